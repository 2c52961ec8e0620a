//go:build real || soak

package packages_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	dockerRole = "docker"
	pythonLink = "/opt/cabrank-tests-python" // to the Python that examples have
)

// runDocker stands in for docker, of which it knows what docs/install.md types: load,
// build, run, exec, logs and stop. Images that are not there are copies of this machine
// with the tools of the language that their name begins with. Containers have files,
// processes and users as with docker; ports are those of the machine.
func runDocker(args []string) error {
	for _, folder := range []string{"images", "layers", "containers"} {
		if err := os.MkdirAll(filepath.Join(state, folder), 0o755); err != nil {
			return err
		}
	}
	commands := map[string]func([]string) error{
		"load": dockerLoad, "build": dockerBuild, "run": dockerRun, "exec": dockerExec, "logs": dockerLogs, "stop": dockerStop,
	}
	command := commands[args[0]]
	if command == nil {
		return fmt.Errorf("docker %s is not a command that this stand-in knows", args[0])
	}
	return command(args[1:])
}

// imageFile is where an image is written, by its name with or without a tag.
func imageFile(name string) string {
	if !strings.Contains(name[strings.LastIndex(name, "/")+1:], ":") {
		name += ":latest"
	}
	return filepath.Join(state, "images", strings.ReplaceAll(name, "/", "_"))
}

// readImage returns nil if there is none of that name.
func readImage(name string) *image {
	content, err := os.ReadFile(imageFile(name))
	if err != nil {
		return nil
	}
	i := &image{}
	if err := json.Unmarshal(content, i); err != nil {
		panic(err)
	}
	return i
}

func (i *image) write(name string) error {
	content, err := json.Marshal(i)
	if err != nil {
		return err
	}
	return os.WriteFile(imageFile(name), content, 0o644)
}

// dockerLoad reads an image as docker has always written it.
// Source: Docker Image Specification v1.2, combined image JSON + filesystem changeset.
func dockerLoad(args []string) error {
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	file := flags.String("i", "/dev/stdin", "")
	flags.StringVar(file, "input", "/dev/stdin", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	folder, err := os.MkdirTemp(filepath.Join(state, "layers"), "loaded-")
	if err != nil {
		return err
	}
	if err := shell(`tar -xf "$1" -C "$2"`, *file, folder); err != nil {
		return err
	}
	var manifests []struct {
		Config   string   `json:"Config"`
		RepoTags []string `json:"RepoTags"`
		Layers   []string `json:"Layers"`
	}
	var config struct {
		Config image `json:"config"`
	}
	if err := readJSON(filepath.Join(folder, "manifest.json"), &manifests); err != nil {
		return err
	}
	for _, manifest := range manifests {
		if err := readJSON(filepath.Join(folder, manifest.Config), &config); err != nil {
			return err
		}
		loaded := config.Config
		for n, layer := range manifest.Layers {
			to := filepath.Join(folder, "files-"+strconv.Itoa(n))
			if err := shell(`mkdir "$2"; tar -xf "$1" -C "$2"`, filepath.Join(folder, layer), to); err != nil {
				return err
			}
			loaded.Layers = append([]string{to}, loaded.Layers...)
		}
		for _, tag := range manifest.RepoTags {
			if err := loaded.write(tag); err != nil {
				return err
			}
			fmt.Fprintln(os.Stdout, "Loaded image:", tag)
		}
	}
	return nil
}

func readJSON(name string, into any) error {
	content, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return json.Unmarshal(content, into)
}

func dockerBuild(args []string) error {
	flags := flag.NewFlagSet("build", flag.ContinueOnError)
	tag := flags.String("t", "", "")
	file := flags.String("f", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 || *tag == "" {
		return errors.New("docker build: give a name and a folder")
	}
	if *file == "" {
		*file = filepath.Join(flags.Arg(0), "Dockerfile")
	}
	content, err := os.ReadFile(*file)
	if err != nil {
		return err
	}
	b := &build{context: flags.Arg(0), stages: map[string]*image{}}
	for _, i := range readDockerfile(string(content)) {
		fmt.Fprintln(os.Stdout, "=>", i.name, i.args)
		if err := b.do(i); err != nil {
			return fmt.Errorf("%s %s: %w", i.name, i.args, err)
		}
	}
	return b.now.write(*tag)
}

// list is a flag that may be given more than once.
type list []string

func (l *list) String() string     { return strings.Join(*l, " ") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

func dockerRun(args []string) error {
	var (
		c              container
		env, ports     list
		volumes, empty list
		flags          = flag.NewFlagSet("run", flag.ContinueOnError)
		detached       = flags.Bool("d", false, "")
		name           = flags.String("name", strconv.Itoa(os.Getpid()), "")
		as             = flags.String("user", "", "")
		entry          = flags.String("entrypoint", "", "")
	)
	flags.Bool("rm", false, "")
	flags.String("network", "host", "") // all containers have that of the machine
	flags.StringVar(as, "u", "", "")
	flags.BoolVar(&c.ReadOnly, "read-only", false, "")
	flags.Var(&env, "e", "")
	flags.Var(&ports, "p", "")
	flags.Var(&volumes, "v", "")
	flags.Var(&empty, "tmpfs", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *detached {
		return detach(*name, args)
	}
	found := readImage(flags.Arg(0))
	if found == nil {
		return fmt.Errorf("no image %q", flags.Arg(0))
	}
	for _, port := range ports {
		numbers := strings.Split(port, ":")
		if n := len(numbers); n < 2 || numbers[n-1] != numbers[n-2] {
			return fmt.Errorf("-p %s: this stand-in has the ports of the container outside", port)
		}
	}
	c.Image, c.Volumes, c.Empty = *found, volumes, empty
	c.Image.Env = append(c.Image.Env, env...)
	if *as != "" {
		c.Image.User = *as
	}
	c.Command = slices.Concat(c.Image.Entrypoint, c.Image.Cmd)
	if flags.NArg() > 1 {
		c.Command = slices.Concat(c.Image.Entrypoint, flags.Args()[1:])
	}
	if *entry != "" {
		c.Command = append([]string{*entry}, flags.Args()[1:]...)
	}
	return c.serve(*name)
}

// serve runs a container to its end, and ends by its status. SIGTERM and SIGINT go on to
// its process 1.
func (c container) serve(name string) error {
	folder := filepath.Join(state, "containers", name)
	c.Root = filepath.Join(folder, "root")
	if err := mountLayers(c.Root, c.Image.Layers, filepath.Join(folder, "written")); err != nil {
		return err
	}
	cmd, err := c.command()
	if err != nil {
		return err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	if err := startProgram(cmd); err != nil {
		return err
	}
	pids := fmt.Sprint(cmd.Process.Pid, " ", os.Getpid())
	if err := os.WriteFile(filepath.Join(folder, "pids"), []byte(pids), 0o644); err != nil {
		return err
	}
	go func() { // ends with the process
		for s := range signals {
			_ = cmd.Process.Signal(s)
		}
	}()
	_ = cmd.Wait()
	code := cmd.ProcessState.ExitCode()
	if end := cmd.ProcessState.Sys().(syscall.WaitStatus); end.Signaled() {
		code = 128 + int(end.Signal())
	}
	if err := os.WriteFile(filepath.Join(folder, "status"), []byte(strconv.Itoa(code)), 0o644); err != nil {
		return err
	}
	os.Exit(code) //nolint:forbidigo // the status of docker run is that of the container
	return nil
}

// startProgram starts process 1 of a container, and returns when that has become the
// program of the container, or has ended.
func startProgram(cmd *exec.Cmd) error {
	become, closed, err := os.Pipe()
	if err != nil {
		return err
	}
	defer become.Close()
	cmd.ExtraFiles = []*os.File{closed}
	err = cmd.Start()
	closed.Close()
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, become)
	return err
}

// detach runs a container behind this process, whose output is kept.
func detach(name string, args []string) error {
	folder := filepath.Join(state, "containers", name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	output, err := os.Create(filepath.Join(folder, "log"))
	if err != nil {
		return err
	}
	args = slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "-d" })
	cmd := exec.Command(dockerRole, append([]string{"run"}, args...)...)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, name)
	return nil
}

// running returns process 1 of a container, and the one that has started it.
func running(name string) (first, runner int, err error) {
	content, err := os.ReadFile(filepath.Join(state, "containers", name, "pids"))
	if err == nil {
		_, err = fmt.Sscan(string(content), &first, &runner)
	}
	return first, runner, err
}

func dockerExec(args []string) error {
	first, _, err := running(args[0])
	if err != nil {
		return err
	}
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", first))
	if err != nil {
		return err
	}
	program, err := exec.LookPath("nsenter")
	if err != nil {
		return err
	}
	status := syscall.Stat_t{}
	if err := syscall.Stat(fmt.Sprintf("/proc/%d", first), &status); err != nil {
		return err
	}
	line := []string{
		"nsenter", "--target", strconv.Itoa(first), "--mount", "--pid", "--root", "--wd",
		"--setgid", strconv.Itoa(int(status.Gid)), "--setuid", strconv.Itoa(int(status.Uid)), "--",
	}
	return syscall.Exec(program, append(line, args[1:]...), strings.Split(strings.TrimSuffix(string(environ), "\x00"), "\x00"))
}

func dockerLogs(args []string) error {
	return shell(`cat "$1"`, filepath.Join(state, "containers", args[0], "log"))
}

// dockerStop is stricter than docker: a container that does not end by 0 fails it.
func dockerStop(args []string) error {
	first, runner, err := running(args[0])
	if err != nil {
		return err
	}
	if err := syscall.Kill(first, syscall.SIGTERM); err != nil {
		return err
	}
	if err := awaitEnd(runner, 30*time.Second); err != nil {
		return err
	}
	status, err := os.ReadFile(filepath.Join(state, "containers", args[0], "status"))
	if err != nil || string(status) != "0" {
		return fmt.Errorf("the container has ended by %s, want 0 (%w)", status, err)
	}
	fmt.Fprintln(os.Stdout, args[0])
	return nil
}

// awaitEnd waits for the end of a process that is not a child.
func awaitEnd(pid int, within time.Duration) error {
	process, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil // it was quick
	}
	if err != nil {
		return err
	}
	defer unix.Close(process)
	events := []unix.PollFd{{Fd: int32(process), Events: unix.POLLIN}}
	for deadline := time.Now().Add(within); ; {
		n, err := unix.Poll(events, int(time.Until(deadline).Milliseconds()))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case n == 0:
			return fmt.Errorf("process %d has not ended within %v", pid, within)
		default:
			return nil
		}
	}
}

// shell runs a script with arguments, whose output is that of this process.
func shell(script string, args ...string) error {
	cmd := exec.Command("/bin/sh", append([]string{"-ec", script, "sh"}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %q: %w", script, args, err)
	}
	return nil
}

func unmount(target string) error {
	if err := unix.Unmount(target, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount %s: %w", target, err)
	}
	return nil
}
