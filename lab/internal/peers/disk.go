package peers

import (
	"os"
	"os/exec"
	"strings"
)

// disk is what a program needs there, in bytes.
type disk struct {
	Binary    int64 `json:"binary_bytes"`
	Libraries int64 `json:"library_bytes"` // shared ones that it is linked with, all together
	Count     int   `json:"libraries"`
}

// sizeOf measures a program; what cannot be measured is 0.
func sizeOf(path string) (d disk) {
	info, err := os.Stat(path)
	if err != nil {
		return d
	}
	d.Binary = info.Size()
	out, err := exec.Command("ldd", path).Output()
	if err != nil {
		return d // a static program: ldd fails
	}
	for _, library := range linked(string(out)) {
		if info, err := os.Stat(library); err == nil {
			d.Libraries += info.Size()
			d.Count++
		}
	}
	return d
}

// linked takes the paths from what ldd prints: "libz.so.1 => /lib/libz.so.1
// (0x7f…)", and "/lib64/ld-linux-x86-64.so.2 (0x7f…)" for the loader.
func linked(ldd string) (paths []string) {
	for line := range strings.Lines(ldd) {
		for field := range strings.FieldsSeq(line) {
			if strings.HasPrefix(field, "/") {
				paths = append(paths, field)
			}
		}
	}
	return paths
}
