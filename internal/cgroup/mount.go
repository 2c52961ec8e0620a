package cgroup

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// maxDepth bounds how many nested control groups are looked at; the kernel's own
// bound (cgroup.max.depth) is larger, what people nest is far below.
const maxDepth = 64

// directory is one control group as a place in the file system.
type directory struct {
	path string
	v2   bool
}

// directories returns where a controller's settings for this process are: its
// own groups and those above them, up to the mounts. Each of them may have a
// limit, and the lowest one binds.
func directories(root fs.FS, controller string) []directory {
	var found []directory
	groups := readLines(root, "proc/self/cgroup")
	for _, mount := range mounts(root, controller) {
		if group, known := groupOf(groups, mount.v2, controller); known {
			found = append(found, mount.directories(group)...)
		}
	}
	return found
}

// mount is a place where control groups with a controller are mounted.
type mount struct {
	root  string // the group that is mounted, seen from the hierarchy's root
	point string // where it is mounted
	v2    bool
}

// mounts reads /proc/self/mountinfo. Shape of a line (proc(5)): id, parent,
// device, root, mount point, options, optional fields, "-", file system type,
// source, super options.
func mounts(root fs.FS, controller string) []mount {
	var found []mount
	for _, line := range readLines(root, "proc/self/mountinfo") {
		before, after, separated := strings.Cut(line, " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if !separated || len(fields) < 5 || len(kind) < 3 {
			continue
		}
		m := mount{root: unescape(fields[3]), point: unescape(fields[4]), v2: kind[0] == "cgroup2"}
		if m.v2 || kind[0] == "cgroup" && hasWord(kind[2], controller) {
			found = append(found, m)
		}
	}
	return found
}

// groupOf finds this process's group in the lines of /proc/self/cgroup. Shape
// (cgroups(7)): hierarchy, controllers, path with colons between; version 2 is
// "0::/path".
func groupOf(lines []string, v2 bool, controller string) (group string, found bool) {
	for _, line := range lines {
		fields := strings.SplitN(line, ":", 3)
		if len(fields) != 3 {
			continue
		}
		isV2 := fields[0] == "0" && fields[1] == ""
		if isV2 == v2 && (v2 || hasWord(fields[1], controller)) {
			return fields[2], true
		}
	}
	return "", false
}

// directories returns the group's own directory and those above it, up to the
// mount.
func (m mount) directories(group string) []directory {
	below, inside := strings.CutPrefix(path.Clean(group), strings.TrimSuffix(m.root, "/"))
	if !inside || strings.HasPrefix(below, "/..") || below != "" && below[0] != '/' {
		below = "" // a group outside of what is mounted: the mount is all we see
	}
	var found []directory
	for {
		found = append(found, directory{path: path.Join(m.point, below), v2: m.v2})
		if below == "" || below == "/" || len(found) == maxDepth {
			return found
		}
		below = path.Dir(below)
	}
}

// Room for what files have, to begin with. The kernel tells a size of 4 KiB, or none,
// of all of them, and some are read every second.
const (
	roomForLine  = 128
	roomForTable = 2 << 10
)

func readText(root fs.FS, name string) string { return string(readFile(root, name, roomForLine)) }

// readFile returns nil if the file is not there, or not for us: nothing is known.
func readFile(root fs.FS, name string, room int) []byte {
	file, err := root.Open(strings.TrimPrefix(path.Clean(name), "/"))
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }() // nothing was written
	for text := make([]byte, 0, room); ; {
		n, err := file.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		switch {
		case errors.Is(err, io.EOF):
			return text
		case err != nil:
			return nil
		case len(text) == cap(text):
			text = slices.Grow(text, 3*len(text))
		}
	}
}

func readLines(root fs.FS, name string) []string {
	return strings.Split(readText(root, name), "\n")
}

func hasWord(list, word string) bool {
	for item := range strings.SplitSeq(list, ",") {
		if item == word {
			return true
		}
	}
	return false
}

// unescape undoes the octal escapes (\040 for a space) of mountinfo.
func unescape(field string) string {
	var plain strings.Builder
	for i := 0; i < len(field); i++ {
		if field[i] == '\\' && i+3 < len(field) {
			if code, err := strconv.ParseUint(field[i+1:i+4], 8, 8); err == nil {
				plain.WriteByte(byte(code))
				i += 3
				continue
			}
		}
		plain.WriteByte(field[i])
	}
	return plain.String()
}

// Place is where a control group is: a path from the root of the file system on.
type Place struct {
	Path string
	V2   bool
}

// Own returns this process's own group for a controller and those above it, up to the
// mount: of version 1 if the controller is mounted there, else of version 2, where it
// may not be allowed. There are none where nothing is mounted.
func Own(root fs.FS, controller string) (places []Place) {
	for _, d := range directories(root, controller) {
		p := Place{Path: path.Join("/", d.path), V2: d.v2}
		if len(places) > 0 && places[0].V2 != p.V2 {
			if p.V2 {
				continue
			}
			places = nil
		}
		places = append(places, p)
	}
	return places
}
