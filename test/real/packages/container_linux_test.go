//go:build real || soak

package packages_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	containerRole = "container" // see runContainer
	standardPath  = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// container is one that runs, or is about to.
type container struct {
	Root     string   `json:"root"` // mounted
	Image    image    `json:"image"`
	Command  []string `json:"command"` // in place of that of the image
	ReadOnly bool     `json:"read_only"`
	Volumes  []string `json:"volumes"` // HERE:THERE
	Empty    []string `json:"empty"`   // folders in memory
}

// command is the process that becomes process 1 of the container.
func (c container) command() (*exec.Cmd, error) {
	plan, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(standIns, containerRole, string(plan))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	return cmd, nil
}

// runContainer becomes the command of a container, as its user.
func runContainer(args []string) error {
	syscall.CloseOnExec(3) // see startProgram
	var c container
	if err := json.Unmarshal([]byte(args[0]), &c); err != nil {
		return err
	}
	if err := c.mount(); err != nil {
		return err
	}
	uid, gid, home, err := account(c.Root, c.Image.User)
	if err != nil {
		return err
	}
	env := append([]string{"PATH=" + standardPath, "HOME=" + home}, c.Image.Env...)
	err = each(
		func() error { return unix.Chroot(c.Root) },
		func() error { return os.Chdir("/" + c.Image.WorkingDir) },
		func() error { return errors.Join(syscall.Setgroups(nil), syscall.Setgid(gid), syscall.Setuid(uid)) },
	)
	if err != nil {
		return err
	}
	env = lastOfEach(env)
	for _, variable := range env {
		if path, ok := strings.CutPrefix(variable, "PATH="); ok {
			os.Setenv("PATH", path)
		}
	}
	program, err := exec.LookPath(c.Command[0])
	if err != nil {
		return err
	}
	return syscall.Exec(program, c.Command, env)
}

// lastOfEach leaves out variables that a later one sets again.
func lastOfEach(env []string) []string {
	var kept []string
	for i, variable := range env {
		name, _, _ := strings.Cut(variable, "=")
		again := slices.ContainsFunc(env[i+1:], func(v string) bool { return strings.HasPrefix(v, name+"=") })
		if !again && name != "USER" && name != "TERM" {
			kept = append(kept, variable)
		}
	}
	return kept
}

func (c container) mount() error {
	if err := mountSystem(c.Root); err != nil {
		return err
	}
	if slices.Contains(c.Image.Layers, hostRoot) {
		for _, shown := range []string{"/opt/gems", "/opt/python-packages", "/node_modules"} {
			if err := mountBind(shown, c.Root+shown); err != nil {
				return err
			}
		}
	}
	for _, volume := range c.Volumes {
		here, there, _ := strings.Cut(volume, ":")
		there, _, _ = strings.Cut(there, ":")
		if err := mountBind(here, c.Root+there); err != nil {
			return err
		}
	}
	if !c.ReadOnly {
		return nil
	}
	steps := []func() error{
		func() error { return unmount(c.Root + "/tmp") },
		func() error { return unix.Mount("", c.Root, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "") },
	}
	for _, folder := range c.Empty {
		steps = append(steps, func() error { return unix.Mount("tmpfs", c.Root+folder, "tmpfs", 0, "mode=1777") })
	}
	return each(steps...)
}

// account finds a user, NAME or ID or with a group behind a colon, among those of a root.
func account(root, name string) (uid, gid int, home string, err error) {
	if name == "" {
		return 0, 0, "/root", nil
	}
	name, group, _ := strings.Cut(name, ":")
	passwd, _ := os.ReadFile(filepath.Join(root, "etc", "passwd"))
	uid, err = strconv.Atoi(name)
	gid, home = 0, "/"
	for line := range strings.Lines(string(passwd)) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) > 5 && (f[0] == name || f[2] == name) {
			uid, err = strconv.Atoi(f[2])
			gid, _ = strconv.Atoi(f[3])
			home = f[5]
		}
	}
	if err != nil {
		return 0, 0, "", user.UnknownUserError(name)
	}
	if group != "" {
		gid, err = strconv.Atoi(group)
	}
	return uid, gid, home, err
}
