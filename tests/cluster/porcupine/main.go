// Check histories of registers for linearizability with porcupine.
//
//	porcupine [-timeout 60s] FILE ...
//
// A file is one history: a JSON object for each operation, as cluster/exported_history.py writes them. A register
// begins with nothing; a write gives it a value, a deletion nothing. An operation without an answer takes effect at any
// moment after its call, or never.
//
// For each register that is not linearizable, or that the time did not suffice for, a line is printed: "illegal" or
// "unknown", the file and the register, separated by tabs. The exit code is 1 if there is such a line, and 2 if a file
// cannot be read.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/anishathalye/porcupine"
)

// A record is a line of a file. Value is null for a deletion, and for a read that found nothing; Return is null for an
// operation of unknown outcome.
type record struct {
	Client    int    `json:"client"`
	Operation string `json:"operation"`
	Register  string `json:"register"`
	Value     *int64 `json:"value"`
	Call      int64  `json:"call"`
	Return    *int64 `json:"return"`
}

// A state is what a register holds; it is comparable, as porcupine's cache wants it.
type state struct {
	present bool
	value   int64
}

func stateOf(value *int64) state {
	if value == nil {
		return state{}
	}
	return state{present: true, value: *value}
}

var register = porcupine.Model{
	Init: func() interface{} { return state{} },
	Step: func(before, input, output interface{}) (bool, interface{}) {
		if input.(string) == "read" {
			return before == output, before
		}
		return true, output
	},
}

func read(path string) (map[string][]porcupine.Operation, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	histories := make(map[string][]porcupine.Operation)
	decoder := json.NewDecoder(bufio.NewReader(file))
	for decoder.More() {
		var line record
		if err := decoder.Decode(&line); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		returned := int64(math.MaxInt64)
		if line.Return != nil {
			returned = *line.Return
		}
		histories[line.Register] = append(histories[line.Register], porcupine.Operation{
			ClientId: line.Client,
			Input:    line.Operation,
			Call:     line.Call,
			Output:   stateOf(line.Value),
			Return:   returned,
		})
	}
	return histories, nil
}

func main() {
	timeout := flag.Duration("timeout", time.Minute, "for each register")
	flag.Parse()
	code, registers, operations := 0, 0, 0
	for _, path := range flag.Args() {
		histories, err := read(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		for name, history := range histories {
			registers++
			operations += len(history)
			if result := porcupine.CheckOperationsTimeout(register, history, *timeout); result != porcupine.Ok {
				fmt.Printf("%s\t%s\t%s\n", map[bool]string{true: "illegal", false: "unknown"}[result == porcupine.Illegal], path, name)
				code = 1
			}
		}
	}
	fmt.Fprintf(os.Stderr, "%d histories, %d registers, %d operations\n", flag.NArg(), registers, operations)
	os.Exit(code)
}
