package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/cabrank/cabrank/internal/cli"
)

const labHelp = `Measure services from outside, with the method that docs/lab-method.md explains:
latency counts from the moment a call was due, nothing is dropped, and what cannot be
told is not.

This is cabrank-lab, a program of its own that stands beside cabrank or on PATH
(docs/install.md): all arguments are for it, and its exit status is ours.`

// labProgram is the file of the lab.
const labProgram = "cabrank-lab"

// labLimit is how long a shell waits for what the lab completes.
const labLimit = 2 * time.Second

func newLabCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "lab [COMMAND]",
		Short:              "Measure what calls cost: loads, latency, errors; a program of its own",
		Long:               labHelp,
		DisableFlagParsing: true,
		RunE:               func(_ *cobra.Command, args []string) error { return becomeLab("cabrank lab", args) },
		ValidArgsFunction:  completeByLab(),
	}
}

func newSocketLoadCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "load URL",
		Short:              "Call a function or publish by a plan, and report latency and errors; by cabrank-lab",
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			return becomeLab("cabrank socket load", append([]string{"socket", "load"}, args...))
		},
		ValidArgsFunction: completeByLab("socket", "load"),
	}
}

// becomeLab has the lab take the place of this program. It returns only if it cannot.
func becomeLab(asked string, args []string) error {
	path, err := findLab()
	if err != nil {
		return cli.UsageError(fmt.Errorf("%s is a program of its own, %s, and it is neither beside cabrank nor on PATH: "+
			"install the Debian package cabrank-lab of the same release, or unpack its archive beside cabrank (docs/install.md)", asked, labProgram))
	}
	environ := os.Environ()
	if self, err := os.Executable(); err == nil {
		environ = append(environ, cli.ProgramVariable+"="+self)
	}
	if err := syscall.Exec(path, append([]string{labProgram}, args...), environ); err != nil {
		return fmt.Errorf("%s cannot be started: %w", path, err)
	}
	return nil
}

// completeByLab asks the lab what may follow, behind what stands for the command itself.
// Where it is missing, or does not answer in time, nothing is offered.
func completeByLab(before ...string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		path, err := findLab()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), labLimit)
		defer cancel()
		asked := slices.Concat([]string{cobra.ShellCompRequestCmd}, before, args, []string{toComplete})
		answer, err := exec.CommandContext(ctx, path, asked...).Output()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		// Its last line is ":" and the directive; those before it are ours as they stand.
		lines := strings.Split(strings.TrimSpace(string(answer)), "\n")
		last := len(lines) - 1
		directive, err := strconv.Atoi(strings.TrimPrefix(lines[last], ":"))
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return lines[:last], cobra.ShellCompDirective(directive)
	}
}

// findLab returns where the lab is.
func findLab() (string, error) {
	if self, err := os.Executable(); err == nil {
		if beside, err := exec.LookPath(filepath.Join(filepath.Dir(self), labProgram)); err == nil {
			return beside, nil
		}
	}
	return exec.LookPath(labProgram)
}
