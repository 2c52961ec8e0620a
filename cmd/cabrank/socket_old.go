package main

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/cabrank/cabrank/internal/config"
)

// readOldFile sets what the file of an old server says and neither a flag nor a variable
// does. Its addresses of Redis are taken together, or not at all.
func (f *socketServe) readOldFile(flags *pflag.FlagSet) error {
	if !flags.Changed(config.ConfigFlag) {
		return nil
	}
	old, err := config.LoadOldSocket(f.file, config.System().ReadFile)
	if err != nil {
		return err
	}
	f.idle = old.Idle
	given := map[string]bool{}
	flags.Visit(func(flag *pflag.Flag) { given[flag.Name] = true })
	for _, key := range config.SocketFlags() {
		if key.Env != "" && os.Getenv(key.Env) != "" {
			given[key.Flag] = true
		}
	}
	for name, value := range old.Flags {
		if given[name] {
			continue
		}
		if err := flags.Set(name, value); err != nil {
			return fmt.Errorf("%s: %w", f.file, err)
		}
	}
	return nil
}
