// Command packaging makes every package that people install Cabrank by, all of them
// around the same static binaries: archives, Ruby gems, Python wheels, npm packages,
// Debian packages and an image for containers. The lab is in packages of its own.
//
// It needs nothing but Go: each format is written here or by a library, never by the
// tools of Ruby, Python, Node or Debian, whose versions would change the bytes. The
// same commit and the same Go give the same bytes, wherever and whenever it runs
// ("make packages-check").
//
//	go run . -out ../dist
//
// It is a module of its own, so that the libraries it needs are not those of Cabrank.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	root := flag.String("root", "..", "folder of the sources of Cabrank")
	out := flag.String("out", "", "folder to write into; what it has now is removed")
	here := flag.Bool("here", false, "only what is for this platform: enough to try a package")
	flag.Parse()
	if *out == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *root, *out, *here)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "packaging:", err)
		os.Exit(1)
	}
}

// run builds the programs, packs them, and writes all packages with their checksums.
func run(ctx context.Context, root, out string, here bool) error {
	var all []artifact
	for _, p := range []product{service(), lab()} {
		r, err := readRelease(ctx, p, root)
		if err != nil {
			return err
		}
		r.Here = here
		for _, fill := range []func(context.Context) error{r.build, r.readModules, r.readLicenses, r.describe} {
			if err := fill(ctx); err != nil {
				return err
			}
		}
		artifacts, err := pack(r)
		if err != nil {
			return err
		}
		all = append(all, artifacts...)
	}
	return write(out, all)
}
