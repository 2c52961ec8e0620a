// Package config turns a file, the environment and command-line flags into one
// validated Config.
//
// Start from Load and Config; Keys and Flags describe what can be set.
//
// How values are found:
//
//  1. Flags win over the environment, the environment over the file, the file
//     over the defaults. Every value remembers its Origin.
//  2. The file is the first of --config, CONFIG_PATH, ./cabrank.yml and
//     ./gruf-relay.yml. The first two must exist when they are given.
//  3. An empty variable counts as not set.
//  4. Every source is checked, also where a stronger one wins, and all faults
//     are reported at once, one line each.
//
// One struct, Config, says by tags for each key its type, range, default, variable,
// flag and meaning (see Key), and so do the structs of what has parts (auth) and of what
// is the option of a part of the program (workers, hooks, lanes, tls). Loading, `cabrank
// check`, --help, error lines, what a reload changes and docs/configuration.md are all made
// from them. The keys of a section are relative to it.
//
// A value goes this way: mapping (a file) or settingsOf (variables, flags) makes a setting of
// it, kind.store puts it into Config and notes its line, the rules hold it against others,
// kind.show writes it back, and told says what of it has changed.
//
// The package reads no process state of its own: what it needs comes in as
// Sources. It never follows a change of the file after Load.
package config
