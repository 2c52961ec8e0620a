//go:build real || soak

package packages_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const systemctlRole = "systemctl"

// unitNotes is where the stand-in keeps what it knows of a unit: NAME.enabled and
// NAME.up are there or not, NAME.main and NAME.manager are processes, NAME.end is how the
// main one has ended.
const unitNotes = state + "/units"

// runSystemctl stands in for systemd, of which it knows one service with the sockets of
// its name: start, stop, reload, restart, enable and what is asked about them. A service
// has its user, its folders, its variables and its sockets, and says when it is ready;
// restrictions (ProtectSystem and the like) do not hold. The first that uses it makes
// the machine one that was booted by systemd.
func runSystemctl(args []string) error {
	for _, folder := range []string{unitNotes, "/run/systemd/system"} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	now := slices.Contains(args, "--now")
	args = slices.DeleteFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") })
	for i, name := range args[1:] {
		if !strings.Contains(name, ".") {
			args[i+1] += ".service"
		}
	}
	err := eachUnit(args[0], args[1:])
	if err == nil && now {
		err = eachUnit(map[string]string{"enable": "start", "disable": "stop"}[args[0]], args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:forbidigo // the status of a command that stands in for another one
	}
	return nil
}

func eachUnit(command string, names []string) error {
	commands := map[string]func(*unit) error{
		"start": (*unit).start, "stop": (*unit).stop, "reload": (*unit).reload,
		"restart":   func(u *unit) error { return errors.Join(u.stop(), u.start()) },
		"enable":    func(u *unit) error { return u.each(u.note("enabled")) },
		"disable":   func(u *unit) error { return u.each(u.forget("enabled")) },
		"is-active": (*unit).isActive, "is-enabled": (*unit).isEnabled,
		"supervise": (*unit).supervise,
	}
	if command == "daemon-reload" {
		return nil
	}
	if commands[command] == nil {
		return fmt.Errorf("systemctl %s is not a command that this stand-in knows", command)
	}
	for _, name := range names {
		u, err := readUnit(name)
		if err != nil {
			return err
		}
		if err := commands[command](u); err != nil {
			return fmt.Errorf("systemctl %s %s: %w", command, name, err)
		}
	}
	return nil
}

// unit is a file of systemd with what was written beside it.
type unit struct {
	name     string
	settings map[string][]string
}

// readUnit reads a unit and its drop-ins; a setting that is set to nothing is so from
// then on.
// Source: systemd.unit(5).
func readUnit(name string) (*unit, error) {
	var files []string
	for _, folder := range []string{"/etc/systemd/system", "/usr/local/lib/systemd/system", "/lib/systemd/system"} {
		if file := filepath.Join(folder, name); len(files) == 0 && exists(file) {
			files = append(files, file)
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("Unit %s not found.", name) //nolint:revive // the words of systemctl
	}
	more, _ := filepath.Glob("/etc/systemd/system/" + name + ".d/*.conf")
	u := &unit{name: name, settings: map[string][]string{}}
	for _, file := range append(files, more...) {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(strings.ReplaceAll(string(content), "\\\n", " ")) {
			key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
			switch {
			case !ok || strings.HasPrefix(line, "#"):
			case value == "":
				delete(u.settings, key)
			default:
				u.settings[key] = append(u.settings[key], value)
			}
		}
	}
	return u, nil
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// last is the value of a setting that counts once.
func (u *unit) last(key string) string {
	if all := u.settings[key]; len(all) > 0 {
		return all[len(all)-1]
	}
	return ""
}

// words are those of all values of a setting.
func (u *unit) words(key string) []string { return strings.Fields(strings.Join(u.settings[key], " ")) }

func (u *unit) file(note string) string { return filepath.Join(unitNotes, u.name+"."+note) }

func (u *unit) note(what string) func(name string) error {
	return func(name string) error {
		return os.WriteFile(filepath.Join(unitNotes, name+"."+what), nil, 0o644)
	}
}

func (u *unit) forget(what string) func(name string) error {
	return func(name string) error {
		err := os.Remove(filepath.Join(unitNotes, name+"."+what))
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		return err
	}
}

// each does something with the unit, and with those that are enabled with it.
func (u *unit) each(do func(name string) error) error {
	for _, name := range append(u.words("Also"), u.name) {
		if err := do(name); err != nil {
			return err
		}
	}
	return nil
}

func (u *unit) isActive() error {
	if exists(u.file("up")) {
		fmt.Fprintln(os.Stdout, "active")
		return nil
	}
	return errors.New("inactive")
}

func (u *unit) isEnabled() error {
	if exists(u.file("enabled")) {
		fmt.Fprintln(os.Stdout, "enabled")
		return nil
	}
	return errors.New("disabled")
}

// start starts a service and waits until it is ready. A socket that it wants is opened
// with it.
func (u *unit) start() error {
	if strings.HasSuffix(u.name, ".socket") {
		return u.note("up")(u.name)
	}
	if exists(u.file("up")) {
		return nil
	}
	for _, note := range []string{"end", "main"} {
		if err := u.forget(note)(u.name); err != nil {
			return err
		}
	}
	for _, name := range u.words("Wants") {
		if strings.HasSuffix(name, ".socket") {
			if err := u.note("up")(name); err != nil {
				return err
			}
		}
	}
	log, err := os.OpenFile("/var/log/"+u.name+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	manager := exec.Command(systemctlRole, "supervise", u.name)
	manager.Stdout, manager.Stderr = log, log
	manager.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	ready, told, err := os.Pipe()
	if err != nil {
		return err
	}
	manager.ExtraFiles = []*os.File{told}
	if err := manager.Start(); err != nil {
		return err
	}
	told.Close()
	if err := ready.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return err
	}
	if _, err := ready.Read(make([]byte, 1)); err != nil {
		return fmt.Errorf("Job for %s failed; /var/log/%s.log has why", u.name, u.name)
	}
	return nil
}

// stop ends a service by SIGTERM to its main process alone, as KillMode=mixed does. It
// is stricter than systemd: the service has to end by 0.
func (u *unit) stop() error {
	if err := u.forget("up")(u.name); err != nil {
		return err
	}
	main, err := u.pid("main")
	if strings.HasSuffix(u.name, ".socket") || err != nil {
		return nil //nolint:nilerr // it does not run
	}
	manager, err := u.pid("manager")
	if err != nil {
		return err
	}
	if err := syscall.Kill(main, syscall.SIGTERM); err != nil {
		return err
	}
	if err := awaitEnd(manager, 30*time.Second); err != nil { // which waits for all of the service
		return err
	}
	if end, err := os.ReadFile(u.file("end")); err != nil || string(end) != "0" {
		return fmt.Errorf("it has ended by %q, want 0 (%w)", end, err)
	}
	return u.forget("main")(u.name)
}

// pid reads a note of a process: main, the one that systemd calls so, or manager, the
// stand-in for systemd itself.
func (u *unit) pid(note string) (pid int, err error) {
	content, err := os.ReadFile(u.file(note))
	if err == nil {
		_, err = fmt.Sscan(string(content), &pid)
	}
	return pid, err
}

func (u *unit) reload() error {
	cmd, err := u.command("ExecReload")
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}
