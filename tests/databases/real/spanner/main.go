package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/cloudspannerecosystem/memefish"
)

// Reads JSON strings, one a line, and prints for each the number of statements, or -1 and the error.
func main() {
	scan := bufio.NewScanner(os.Stdin)
	scan.Buffer(make([]byte, 1<<20), 1<<26)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for scan.Scan() {
		var text string
		if err := json.Unmarshal(scan.Bytes(), &text); err != nil {
			panic(err)
		}
		statements, err := memefish.ParseDDLs("", text)
		result := map[string]any{"count": len(statements)}
		if err != nil {
			result = map[string]any{"count": -1, "error": err.Error()}
		} else {
			formatted := []string{}
			for _, s := range statements {
				formatted = append(formatted, s.SQL())
			}
			result["formatted"] = formatted
		}
		encoded, _ := json.Marshal(result)
		fmt.Fprintln(out, string(encoded))
	}
}
