"""Studies of the exact method: speed, hard questions, rules, waits."""
