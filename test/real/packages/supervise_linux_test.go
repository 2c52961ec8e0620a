//go:build real || soak

package packages_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// command is a line of the unit as the service is started: its user, its variables, and
// the folders that systemd makes for it.
// Source: systemd.exec(5).
func (u *unit) command(key string) (*exec.Cmd, error) {
	words := strings.Fields(u.last(key))
	if len(words) == 0 {
		return nil, fmt.Errorf("no %s", key)
	}
	uid, gid, home, err := account("/", u.last("User"))
	if err != nil {
		return nil, err
	}
	for base, key := range map[string]string{"/run": "RuntimeDirectory", "/var/lib": "StateDirectory", "/var/log": "LogsDirectory"} {
		for _, name := range u.words(key) {
			folder := filepath.Join(base, name)
			if err := errors.Join(os.MkdirAll(folder, 0o755), os.Chown(folder, uid, gid)); err != nil {
				return nil, err
			}
		}
	}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir = u.last("WorkingDirectory")
	cmd.Env = append([]string{"PATH=" + standardPath, "HOME=" + home, "LANG=C.UTF-8"}, u.words("Environment")...)
	for _, file := range u.words("EnvironmentFile") {
		content, err := os.ReadFile(strings.TrimPrefix(file, "-"))
		if err != nil && !strings.HasPrefix(file, "-") {
			return nil, err
		}
		cmd.Env = append(cmd.Env, strings.Fields(string(content))...)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	return cmd, nil
}

// supervise runs a service to its end, through all processes that are its main one in
// turn, and writes down how the last has ended. It says that the service is ready by a
// byte to the file that it was given.
// Source: sd_notify(3), sd_listen_fds(3).
func (u *unit) supervise() error {
	ready := os.NewFile(3, "ready")
	unix.CloseOnExec(3)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	notices, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: "/run/systemd/notify", Net: "unixgram"})
	if err != nil {
		return err
	}
	if err := os.Chmod("/run/systemd/notify", 0o777); err != nil {
		return err
	}
	cmd, err := u.command("ExecStart")
	if err != nil {
		return err
	}
	if err := u.passSockets(cmd); err != nil {
		return err
	}
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET=/run/systemd/notify")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := errors.Join(u.setPID("manager", os.Getpid()), u.setPID("main", cmd.Process.Pid)); err != nil {
		return err
	}
	go func() { // ends with the process
		notice := make([]byte, 4096)
		for {
			n, err := notices.Read(notice)
			if err != nil {
				return
			}
			for line := range strings.Lines(string(notice[:n])) {
				key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
				switch key {
				case "READY":
					_ = u.note("up")(u.name)
					_, _ = ready.Write([]byte{1})
				case "MAINPID":
					pid, _ := strconv.Atoi(value)
					_ = u.setPID("main", pid)
				}
			}
		}
	}()
	return u.reap()
}

// reap waits for all processes of the service. The end of the main one is the end of the
// service.
func (u *unit) reap() error {
	defer os.Remove("/run/systemd/notify")
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return nil // ECHILD: no process is left
		default:
			if main, err := u.pid("main"); err == nil && main == pid {
				_ = u.forget("up")(u.name)
				if err := os.WriteFile(u.file("end"), []byte(strconv.Itoa(status.ExitStatus())), 0o644); err != nil {
					return err
				}
			}
		}
	}
}

func (u *unit) setPID(note string, pid int) error {
	return os.WriteFile(u.file(note), []byte(strconv.Itoa(pid)), 0o644)
}

// passSockets opens what the socket unit of the same name says, if that was started.
func (u *unit) passSockets(cmd *exec.Cmd) error {
	name := strings.TrimSuffix(u.name, ".service") + ".socket"
	socket, err := readUnit(name)
	if err != nil || !exists(socket.file("up")) {
		return nil //nolint:nilerr // there is none
	}
	var names []string
	for _, address := range socket.words("ListenStream") {
		if !strings.Contains(address, ":") {
			address = ":" + address
		}
		on, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		file, err := on.(*net.TCPListener).File()
		if err != nil {
			return err
		}
		cmd.ExtraFiles = append(cmd.ExtraFiles, file)
		names = append(names, socket.last("FileDescriptorName"))
	}
	cmd.Env = append(cmd.Env, fmt.Sprint("LISTEN_FDS=", len(names)), "LISTEN_FDNAMES="+strings.Join(names, ":"))
	// LISTEN_PID is the number of the program itself, which a shell knows.
	cmd.Args = append([]string{"/bin/sh", "-c", `export LISTEN_PID=$$; exec "$0" "$@"`}, cmd.Args...)
	cmd.Path = "/bin/sh"
	return nil
}
