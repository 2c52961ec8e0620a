//go:build real || soak

package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/cabrank/cabrank/internal/testkit/script"
)

// TestMain makes this program available to the scripts as "cabrank", without a
// build: the test binary runs main when it is called by that name.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"cabrank": main})
}

// TestScripts runs the command line as people do. A script that needs a
// complete relay or real workers belongs elsewhere.
func TestScripts(t *testing.T) { script.Run(t, nil) }
