package main

import (
	"context"
	"io"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/service"
)

// run is `cabrank run`.
func run(ctx context.Context, given flagValues, command []string, stdout, stderr io.Writer) error {
	return service.Run(ctx, service.Options{
		Build: build(), Stdout: stdout, Stderr: stderr,
		Load: func() (*config.Config, error) { return loadConfig(given, command) },
		Log:  func() config.Log { return config.LoadLog(sourcesOf(given, command)) },
	})
}

// build is what the linker has stamped this program with.
func build() admin.Build { return admin.Build{Version: version, Commit: commit} }

// loadConfig makes the configuration out of this process's surroundings, the
// flags and the command after "--".
func loadConfig(given flagValues, command []string) (*config.Config, error) {
	cfg, err := config.Load(sourcesOf(given, command))
	return cfg, cli.UsageError(err)
}

func sourcesOf(given flagValues, command []string) config.Sources {
	sources := config.System()
	sources.Flags, sources.Command = given, command
	return sources
}
