package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// platform is one of those that packages exist for, with its name in each world.
type platform struct {
	OS, Arch string // as Go says it
	Gem      string // platform of a gem
	Wheel    string // tags of a wheel, joined by dots
	NPMOS    string // process.platform of Node
	NPMArch  string // process.arch of Node
	Debian   string // architecture; empty where Debian does not run
}

// platforms lists them all. Go 1.26 needs macOS 12 and any Linux from 3.2 on; the binary
// is static, so both C libraries of Linux will do.
func platforms() []platform {
	return []platform{
		{"linux", "amd64", "x86_64-linux", "manylinux_2_17_x86_64.musllinux_1_1_x86_64", "linux", "x64", "amd64"},
		{"linux", "arm64", "aarch64-linux", "manylinux_2_17_aarch64.musllinux_1_1_aarch64", "linux", "arm64", "arm64"},
		{"darwin", "amd64", "x86_64-darwin", "macosx_12_0_x86_64", "darwin", "x64", ""},
		{"darwin", "arm64", "arm64-darwin", "macosx_12_0_arm64", "darwin", "arm64", ""},
	}
}

func (p platform) String() string { return p.OS + "-" + p.Arch }

// environment is what a build reads, so that nothing that somebody has set for his own
// builds is in the bytes: the oldest processors of the platform will do.
func (p platform) environment() []string {
	return []string{
		"GOOS=" + p.OS, "GOARCH=" + p.Arch, "GOAMD64=v1", "GOARM64=v8.0",
		"GOEXPERIMENT=", "GOFIPS140=off", "GOFLAGS=",
	}
}

// program is one of ours, built for a platform.
type program struct {
	platform
	Content []byte
}

// build fills r.Programs. The Makefile builds: it alone knows the flags of a build. The
// programs stay in bin/packages, so that Go need not link those again that have not changed.
func (r *release) build(ctx context.Context) error {
	for _, p := range platforms() {
		if r.Here && (p.OS != runtime.GOOS || p.Arch != runtime.GOARCH) {
			continue
		}
		name := filepath.Join("bin", "packages", r.Name+"-"+p.String())
		cmd := exec.CommandContext(ctx, "make", "-C", r.Root, r.Build, r.Into+"="+name)
		cmd.Env = append(os.Environ(), p.environment()...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("build for %s: %w", p, err)
		}
		content, err := os.ReadFile(filepath.Join(r.Root, name))
		if err != nil {
			return err
		}
		r.Programs = append(r.Programs, program{platform: p, Content: content})
	}
	return nil
}
