// Command lane runs tests that start processes: those of the gate, which
// test/promises.tsv names, or all others.
//
//	go run ./test/lane gate FLAGS...   the lane of `make test`
//	go run ./test/lane soak FLAGS...   all others, package by package
//
// FLAGS are those of `go test`, the tag among them. A test of the gate that fails is
// run once more, alone. If it passes then, the run goes on and tells of it at its end.
// What has panicked, raced or left something behind is never run again. With SOAK_AGAIN
// in its environment, soak runs also what has passed for this commit.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "lane:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	lane, err := readPromises(promisesFile)
	if err != nil {
		return err
	}
	switch {
	case len(args) > 0 && args[0] == "gate":
		return gate(ctx, lane, args[1:], out)
	case len(args) > 0 && args[0] == "soak":
		return soak(ctx, lane, args[1:], out)
	}
	return errors.New("usage: go run ./test/lane gate|soak FLAGS")
}
