package web

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// kept is a caller over HTTP/1 in memory whose connection may be kept.
type kept struct {
	net.Conn

	t    testing.TB
	r    *bufio.Reader
	told *owned
}

// callers returns how to connect to a server whose every path is a door's.
func callers(t testing.TB, serve http.HandlerFunc) (connect func() *kept) {
	t.Helper()
	s := NewHTTP1(Limits{Head: 5 * time.Second, HeadBytes: 4096}, nil, func(*http.Request) http.Handler { return serve }, quiet())
	t.Cleanup(s.Close)
	return func() *kept {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { theirs.Close() })
		c := &kept{theirs, t, bufio.NewReader(theirs), &owned{Conn: ours}}
		s.ServeConn(c.told)
		return c
	}
}

// says sends text, as fast as it is read.
func (c *kept) says(text string) {
	go func() { _, _ = io.WriteString(c, text) }() // ends when it is read, or closed
}

// hears takes an answer.
func (c *kept) hears(status int, body string) *http.Response {
	c.t.Helper()
	answer, err := http.ReadResponse(c.r, nil)
	testkit.Must(c.t, err)
	all, err := io.ReadAll(answer.Body)
	testkit.Need(c.t, err == nil && answer.StatusCode == status && string(all) == body,
		"%d %q, %v, want %d %q", answer.StatusCode, all, err, status, body)
	return answer
}

// hearsEnd takes the end, and nothing before it.
func (c *kept) hearsEnd() {
	c.t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(silence + time.Second))
	rest, err := io.ReadAll(c.r)
	testkit.Want(c.t, len(rest) == 0 && err == nil, "%q before the end, %v", rest, err)
}

// elapse lets the time of a bubble go by.
func elapse(d time.Duration) { <-time.After(d) }

// callOf is a request of a call whose body is known.
func callOf(path, body string) string {
	return fmt.Sprintf("POST /%s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
}

// echoes answers with what it was sent.
func echoes(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	w.WriteHeader(http.StatusOK)
	fmt.Fprint(w, r.URL.Path, " ", string(body))
	if err != nil {
		fmt.Fprint(w, " ", err)
	}
}

// Calls that were sent one behind the other are answered in their order, on one connection,
// whose owner hears of each. Nothing else keeps it.
func TestCallsBehindEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := callers(t, echoes)()
		c.says(callOf("a", "1") + callOf("b", "") + "POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n34\r\n0\r\nX-Odd: 1\r\n\r\n" + callOf("d", "5"))
		for _, body := range []string{"/a 1", "/b ", "/c 34", "/d 5"} {
			c.hears(http.StatusOK, body)
		}
		elapse(silence - time.Second)
		c.says(callOf("e", "6"))
		c.hears(http.StatusOK, "/e 6")
		began := time.Now()
		c.hearsEnd()
		testkit.Equal(t, time.Since(began), silence, "a connection without a call ended after")
		testkit.Equal(t, c.told.heard(), strings.Repeat("busy idle ", 5)+"closed", "told")
	})
}

// What is left of a request whose answer is whole is never taken for the next one.
func TestAnswersBeforeTheEndOfTheRequest(t *testing.T) {
	t.Parallel()
	const head, next = "POST /a HTTP/1.1\r\nHost: x\r\n", "POST /next HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
	for name, c := range map[string]struct {
		first, later string
	}{
		"a length, half of it":    {head + "Content-Length: 10000\r\n\r\nabc", next + next},
		"a length, none of it":    {head + "Content-Length: 100\r\n\r\n", next + next},
		"chunks, in one":          {head + "Transfer-Encoding: chunked\r\n\r\nfff\r\nabc", next + next},
		"chunks, between two":     {head + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", next + next},
		"chunks, in a length":     {head + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nfff", next + next},
		"chunks that are none":    {head + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nx\r\n" + next, next},
		"a trailer that is none":  {head + "Transfer-Encoding: chunked\r\n\r\n0\r\nPOST /next HTTP/1.1\r\n\r\n" + next, next},
		"a trailer without end":   {head + "Transfer-Encoding: chunked\r\n\r\n0\r\nX: 1\r\n", next + next},
		"a trailer that is long":  {head + "Transfer-Encoding: chunked\r\n\r\n0\r\nX: " + strings.Repeat("x", 5000) + "\r\n" + next, next},
		"more than is waited for": {head + "Content-Length: 1000000\r\n\r\n" + strings.Repeat("x", 400_000), next + next},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // in real time: a bubble's does not go by where a lock is waited for
			var served atomic.Int32
			caller := callers(t, func(w http.ResponseWriter, r *http.Request) {
				served.Add(1)
				_ = http.NewResponseController(w).EnableFullDuplex()
				Begun(r.Context())
				go io.Copy(io.Discard, r.Body) // ends with the request
				w.WriteHeader(http.StatusOK)
				_, _ = io.WriteString(w, "early")
			})()
			caller.says(c.first)
			caller.hears(http.StatusOK, "early")
			elapse(2 * lateEnd)
			caller.says(c.later)
			caller.hearsEnd()
			testkit.Equal(t, served.Load(), 1, "requests were served")
		})
	}
}

// A caller may be as slow as it likes with its request, if it moves a byte in time.
func TestSlowRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := callers(t, echoes)()
		c.says("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n")
		for _, b := range "12345" {
			elapse(silence - time.Second)
			c.says(string(b))
		}
		c.hears(http.StatusOK, "/a 12345")
		c.says("POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n12")
		began := time.Now()
		answer, err := http.ReadResponse(c.r, nil)
		took := time.Since(began)
		testkit.Need(t, err == nil && took == silence+lateEnd, "a silent caller was cut after %v, %v", took, err)
		body, _ := io.ReadAll(answer.Body)
		testkit.Want(t, strings.HasPrefix(string(body), "/b 12 "), "%q", body)
		c.hearsEnd()
	})
}

// A caller that has sent its whole request may wait for the answer as long as that takes, and
// its leaving is noticed.
func TestCallersThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const long = 10 * silence
		left := make(chan time.Duration, 1)
		c := callers(t, func(w http.ResponseWriter, r *http.Request) {
			began := time.Now()
			_, _ = io.Copy(io.Discard, r.Body)
			select {
			case <-r.Context().Done():
				left <- time.Since(began)
			case <-time.After(long):
				w.WriteHeader(http.StatusOK)
				_, _ = io.WriteString(w, "late")
			}
		})()
		for _, body := range []string{"", "1"} {
			c.says(callOf("a", body))
			c.hears(http.StatusOK, "late")
		}
		c.says(callOf("a", "1"))
		elapse(2 * silence)
		c.Close()
		testkit.Equal(t, <-left, 2*silence, "the caller had left after")
	})
}

// An answer may come as slowly as its handler likes, for longer than any request may take.
func TestLongAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := callers(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusOK)
			for range 20 {
				_, err := io.WriteString(w, "x")
				testkit.Want(t, err == nil, "%v", err)
				err = http.NewResponseController(w).Flush()
				testkit.Want(t, err == nil, "%v", err)
				elapse(silence - time.Second)
			}
		})()
		for range 2 {
			c.says(callOf("a", "1"))
			c.hears(http.StatusOK, strings.Repeat("x", 20))
		}
	})
}

// A caller that takes nothing of its answer is cut.
func TestCallersThatTakeNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := make(chan time.Duration, 1)
		c := callers(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			began := time.Now()
			for {
				if _, err := w.Write(make([]byte, 1000)); err != nil {
					failed <- time.Since(began)
					return
				}
			}
		})()
		c.says(callOf("a", "1"))
		testkit.Equal(t, <-failed, silence, "it was cut after")
		synctest.Wait()
		told := c.told.heard()
		testkit.Want(t, strings.HasPrefix(told, "busy closed"), "told %s", told)
	})
}

// Only some requests are worked on at a time, however many there are: the others wait until
// these have a call, and until their answers have gone. One that waits for its caller keeps
// nobody out.
func TestTurnstile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inside, begun, done atomic.Int32
		opens, answers, ends := make(chan struct{}), make(chan struct{}), make(chan struct{})
		connect := callers(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			inside.Add(1)
			<-opens
			inside.Add(-1)
			begun.Add(1)
			Begun(r.Context())
			<-answers
			w.WriteHeader(http.StatusOK)
			inside.Add(1)
			<-ends
			inside.Add(-1)
			done.Add(1)
		})
		want := func(in, open, answered int) {
			t.Helper()
			synctest.Wait()
			if got := []int32{inside.Load(), begun.Load(), done.Load()}; !slices.Equal(got, []int32{int32(in), int32(open), int32(answered)}) {
				t.Errorf("%d are inside, %d have a call, %d an answer; want %d, %d, %d", got[0], got[1], got[2], in, open, answered)
			}
		}
		slow := connect()
		slow.says("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n12")
		most, all := max(runtime.GOMAXPROCS(0)/2, 1), []*kept{}
		for range 3 * most {
			c := connect()
			c.says(callOf("a", "1"))
			all = append(all, c)
		}
		want(most, 0, 0)
		opens <- struct{}{}
		want(most, 1, 0)
		close(opens)
		want(0, 3*most, 0)
		close(answers)
		want(most, 3*most, 0)
		ends <- struct{}{}
		want(most, 3*most, 1)
		close(ends)
		want(0, 3*most, 3*most)
		for _, c := range all {
			c.hears(http.StatusOK, "")
		}
	})
}

// A request that waits for something else keeps nobody out for long.
func TestTurnstileBesideHandlersThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := make(chan struct{})
		connect := callers(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/wait" {
				<-wait
			}
			w.WriteHeader(http.StatusOK)
			if r.URL.Path == "/wait" {
				<-wait
			}
		})
		for range 4 * runtime.GOMAXPROCS(0) {
			connect().says(callOf("wait", ""))
		}
		synctest.Wait()
		for range 2 { // before the answer, and in it
			good, began := connect(), time.Now()
			good.says(callOf("a", ""))
			good.hears(http.StatusOK, "")
			took := time.Since(began)
			testkit.Want(t, took <= 8*mostInside, "it took %v", took)
			for range 4 * runtime.GOMAXPROCS(0) {
				wait <- struct{}{}
			}
		}
	})
}

// Whoever does not take an answer keeps nobody out.
func TestTurnstileBesideUnreadAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connect := callers(t, func(w http.ResponseWriter, r *http.Request) {
			Begun(r.Context())
			w.WriteHeader(http.StatusOK)
			for _, size := range []int{10, 2000, 8000} {
				_, _ = w.Write(make([]byte, size))
			}
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, "end")
		})
		for range 10 {
			connect().says(callOf("a", ""))
		}
		synctest.Wait()
		good := connect()
		good.says(callOf("a", ""))
		began := time.Now()
		good.hears(http.StatusOK, string(make([]byte, 10010))+"end")
		took := time.Since(began)
		testkit.Want(t, took == 0, "it took %v", took)
	})
}

// leaver is a connection that has to end with its answer.
type leaver struct{ *owned }

func (leaver) Leaving() bool { return true }

// Where the process leaves, a caller is told by its answer that its connection ends.
func TestLeavingIsTold(t *testing.T) {
	s := NewHTTP1(Limits{Head: 5 * time.Second, HeadBytes: 4096}, nil, func(*http.Request) http.Handler { return http.HandlerFunc(echoes) }, quiet())
	defer s.Close()
	ours, theirs := net.Pipe()
	s.ServeConn(leaver{&owned{Conn: ours}})
	c := &kept{theirs, t, bufio.NewReader(theirs), nil}
	c.says(callOf("a", "1") + callOf("b", "2"))
	testkit.Want(t, c.hears(http.StatusOK, "/a 1").Close, "it is not told that its connection ends")
	c.hearsEnd()
}
