package admin

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxEventLine bounds one line of an answer. The longest has the faults of a
// configuration.
const maxEventLine = 4 << 20

// Client gives orders to a running cabrank over its control socket.
//
// Shape: made by NewClient, used from anywhere, ended by Close.
type Client struct {
	path string
	http *http.Client
	peer atomic.Int64 // process at the other end of the last connection; 0: not seen
}

// NewClient returns a client for the socket at path. It does not connect yet.
func NewClient(path string) *Client {
	c := &Client{path: path}
	c.http = &http.Client{Transport: &http.Transport{DialContext: c.dial}}
	return c
}

// Path returns where the socket is.
func (c *Client) Path() string { return c.path }

func (c *Client) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", c.path)
	if err != nil {
		return nil, err
	}
	if socket, ok := conn.(*net.UnixConn); ok {
		_, pid, _ := peerOf(socket)
		c.peer.Store(int64(pid))
	}
	return conn, nil
}

// Peer returns the process that was connected to last, by the number that it has
// here: in another process namespace it has another one, which is what it tells of
// itself. 0: it cannot be seen from here, or the system does not tell.
func (c *Client) Peer() int { return int(c.peer.Load()) }

// Close ends connections that are not in use.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// NobodyError says that there is no cabrank to talk to at a path.
type NobodyError struct {
	Path  string
	cause error
}

// Error implements error: one line that says what to do.
func (e *NobodyError) Error() string {
	if errors.Is(e.cause, fs.ErrPermission) {
		return fmt.Sprintf("not allowed to use the control socket %s: only its user and root are", e.Path)
	}
	return fmt.Sprintf("nothing listens on %s; is cabrank running? --control names another socket", e.Path)
}

// Unwrap returns the cause.
func (e *NobodyError) Unwrap() error { return e.cause }

// LostError says that the answer ended before its last line: cabrank has ended,
// or has been ended.
type LostError struct{ cause error }

// Error implements error.
func (e *LostError) Error() string { return "cabrank went away before it had answered" }

// Unwrap returns the cause, nil if the connection just ended.
func (e *LostError) Unwrap() error { return e.cause }

// RemoteError is cabrank's own word that a command has failed.
type RemoteError struct {
	Reason string
	Faults []string // of a configuration, one line each
	Misuse bool     // the request makes no sense there; nothing was begun
}

// Error implements error: the reason, then the faults, each on a line.
func (e *RemoteError) Error() string {
	return strings.Join(append([]string{e.Reason}, e.Faults...), "\n")
}

// Status asks how things are. raw is the answer as it came, fields that this
// client does not know included.
func (c *Client) Status(ctx context.Context) (status Status, raw []byte, err error) {
	raw, err = c.get(ctx, "status", &status)
	return status, raw, err
}

// Live asks what has been counted. The error of a cabrank that is too old to tell says so.
func (c *Client) Live(ctx context.Context) (live Live, err error) {
	_, err = c.get(ctx, "live", &live)
	return live, err
}

func (c *Client) get(ctx context.Context, what string, into any) (raw []byte, err error) {
	answer, err := c.ask(ctx, http.MethodGet, what, nil)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	raw, err = io.ReadAll(io.LimitReader(answer.Body, maxEventLine))
	switch {
	case err != nil:
		return nil, c.lost(ctx, err)
	case answer.StatusCode == http.StatusNotFound && what != "status":
		return nil, fmt.Errorf("the cabrank at %s is older than this command and has no /v1/%s: cabrank upgrade, then once more", c.path, what)
	case answer.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s answers status %s: is it the control socket of a cabrank?", c.path, answer.Status)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return nil, fmt.Errorf("answer of %s: %w", c.path, err)
	}
	return raw, nil
}

// Do gives a command ("restart", with a RestartRequest) and hands every line of
// the answer to each, as it came and decoded, the last one too.
//
// Errors: *NobodyError, *RemoteError, *LostError, or that of ctx. A command that
// has begun goes on in all but the second case.
func (c *Client) Do(ctx context.Context, command string, request any, each func(line []byte, e Event)) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	answer, err := c.ask(ctx, http.MethodPost, command, bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, maxEventLine)
	for lines.Scan() {
		var e Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("answer of %s with status %s: %w", c.path, answer.Status, err)
		}
		each(lines.Bytes(), e)
		switch {
		case e.Error != "":
			return &RemoteError{Reason: e.Error, Faults: e.Faults, Misuse: answer.StatusCode == http.StatusBadRequest}
		case e.Done:
			return nil
		}
	}
	return c.lost(ctx, lines.Err())
}

func (c *Client) ask(ctx context.Context, method, name string, body io.Reader) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://cabrank/v1/"+name, body)
	if err != nil {
		return nil, err
	}
	answer, err := c.http.Do(request)
	if err == nil {
		return answer, nil
	}
	if operation, ok := errors.AsType[*net.OpError](err); ok && operation.Op == "dial" && ctx.Err() == nil {
		return nil, &NobodyError{Path: c.path, cause: operation}
	}
	return nil, c.lost(ctx, err)
}

// lost explains an answer that broke off.
func (c *Client) lost(ctx context.Context, cause error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &LostError{cause}
}

// FindControl returns the sockets in the folders on which somebody listens, in
// the order of their names. Folders that are not this user's alone are left out:
// what is in them could be anybody's.
func FindControl(folders []string) []string {
	var found []string
	for _, folder := range folders {
		if !isPrivate(folder) {
			continue
		}
		// The pattern is well-formed unless the folder's own name has brackets,
		// and then --control helps.
		paths, _ := filepath.Glob(filepath.Join(folder, "*.sock"))
		for _, path := range paths {
			if Listens(path) && !slices.Contains(found, path) {
				found = append(found, path)
			}
		}
	}
	return found
}

func isPrivate(folder string) bool {
	var stat unix.Stat_t
	return unix.Lstat(folder, &stat) == nil && checkPrivate(folder, &stat) == nil
}

// Listens reports whether somebody listens on the socket of a path that this user may use.
func Listens(path string) bool {
	conn, err := knock(path)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// Gone says whether a process of this machine has ended. One that its parent has
// not waited for yet has.
func Gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // proc(5): pid (name) state …
	if err != nil {
		return false
	}
	return bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" Z"))
}
