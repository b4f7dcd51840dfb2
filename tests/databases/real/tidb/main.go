package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/format"
	_ "github.com/pingcap/tidb/pkg/parser/test_driver"
)

// Reads JSON strings, one a line, and prints for each the number of statements, or -1 and the error.
func main() {
	scan := bufio.NewScanner(os.Stdin)
	scan.Buffer(make([]byte, 1<<20), 1<<26)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	p := parser.New()
	for scan.Scan() {
		var text string
		if err := json.Unmarshal(scan.Bytes(), &text); err != nil {
			panic(err)
		}
		statements, _, err := p.Parse(text, "utf8mb4", "utf8mb4_bin")
		result := map[string]any{"count": len(statements)}
		if err != nil {
			result = map[string]any{"count": -1, "error": err.Error()}
		} else {
			formatted := []string{}
			for _, s := range statements {
				var b strings.Builder
				if err := s.Restore(format.NewRestoreCtx(format.DefaultRestoreFlags, &b)); err != nil {
					b.WriteString("not restored: " + err.Error())
				}
				formatted = append(formatted, b.String())
			}
			result["formatted"] = formatted
		}
		encoded, _ := json.Marshal(result)
		fmt.Fprintln(out, string(encoded))
	}
}
