package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

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

func newLabCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "lab [COMMAND]",
		Short:              "Measure what calls cost: loads, latency, errors; a program of its own",
		Long:               labHelp,
		DisableFlagParsing: true,
		RunE:               func(_ *cobra.Command, args []string) error { return becomeLab("cabrank lab", args) },
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

// findLab returns where the lab is.
func findLab() (string, error) {
	if self, err := os.Executable(); err == nil {
		if beside, err := exec.LookPath(filepath.Join(filepath.Dir(self), labProgram)); err == nil {
			return beside, nil
		}
	}
	return exec.LookPath(labProgram)
}
