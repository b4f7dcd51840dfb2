#!/bin/bash
# raft-rs 0.7.0 (the library of TiKV): with group commit on, and all voters but one in the same commit group, each commit waits
# for the slowest of all voters. The loss of any one then stops all commits, though four of five have the entry.
#
# Guess before the run: a voter without a group is left out of the rule for groups, or is a group of its own. (I recalled that
# the group 0 is special, not how.)
# Seen: four of five voters have the entry. It is committed with one group for all five, and with two groups and a voter without.
# It is not with one group for four and none for the fifth, whether the lost voter has a group or not, nor without any group.
#
# Needs Rust, cargo and crates.io.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
mkdir src
cat > Cargo.toml <<'TOML'
[package]
name = "finding"
version = "0.1.0"
edition = "2021"

[dependencies]
raft = "=0.7.0"
slog = "2"
TOML
cat > src/main.rs <<'RS'
use raft::{prelude::Message, prelude::MessageType, storage::MemStorage, Config, RawNode};

fn commits(groups: &[(u64, u64)], lost: u64) -> bool {
    let storage = MemStorage::new_with_conf_state((vec![1, 2, 3, 4, 5], vec![]));
    let config = Config { id: 1, ..Default::default() };
    let quiet = slog::Logger::root(slog::Discard, slog::o!());
    let mut leader = RawNode::new(&config, storage, &quiet).unwrap();
    leader.raft.enable_group_commit(true);
    leader.raft.assign_commit_groups(groups);
    leader.raft.become_candidate();
    leader.raft.become_leader();
    leader.propose(vec![], b"x".to_vec()).unwrap();
    let (last, term) = (leader.raft.raft_log.last_index(), leader.raft.term);
    leader.raft.on_persist_entries(last, term);
    for id in (2..=5).filter(|&id| id != lost) {
        let mut kept = Message::default();
        kept.set_msg_type(MessageType::MsgAppendResponse);
        (kept.from, kept.to, kept.term, kept.index) = (id, 1, term, last);
        leader.step(kept).unwrap();
    }
    let committed = leader.raft.raft_log.committed == last;
    println!("raft 0.7.0, groups {groups:?}, {lost} lost: {}", if committed { "committed" } else { "waits" });
    committed
}

fn main() {
    let one = [(1, 1), (2, 1), (3, 1), (4, 1), (5, 1)];
    let two = [(1, 1), (2, 1), (3, 2), (4, 2)];
    let found = [commits(&one, 5), commits(&two, 5), commits(&one[..4], 5), commits(&one[..4], 4), commits(&[], 5)];
    if found != [true, true, false, false, false] {
        println!("the behaviour has changed");
        std::process::exit(1);
    }
}
RS
cargo build -q > log 2>&1 || { cat log; exit 2; }
target/debug/finding
