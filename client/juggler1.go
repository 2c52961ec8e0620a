package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// juggler1 is the dialect of servers of now. Ids of requests are numbers. Source:
// docs/juggler.md.
type juggler1 struct{ last atomic.Uint64 }

func (j *juggler1) newID() string { return strconv.FormatUint(j.last.Add(1), 10) }

func (*juggler1) frame(r request, id string) []byte {
	b := make([]byte, 0, 96+len(r.name)+len(r.args))
	b = fmt.Appendf(b, `{"type":"%s","id":%s,`, r.kind, id)
	key := `"channel":`
	switch {
	case r.kind == kindAuth:
		return append(appendText(append(b, `"token":`...), r.token), '}')
	case r.kind == kindCall:
		b = fmt.Appendf(b, `"timeout":%d,`, r.timeout.Milliseconds())
		if r.credit > 0 {
			b = fmt.Appendf(b, `"credit":%d,`, r.credit)
		}
		key = `"uri":`
	case r.pattern:
		key = `"pattern":`
	}
	b = appendText(append(b, key...), r.name)
	if r.args != nil {
		b = append(append(b, `,"args":`...), r.args...)
	}
	return append(b, '}')
}

func (*juggler1) parse(body []byte) (answer, error) {
	var m struct {
		Type    kind            `json:"type"`
		ID      json.RawMessage `json:"id"`
		Channel string          `json:"channel"`
		Pattern string          `json:"pattern"`
		Args    json.RawMessage `json:"args"`
		Error   json.RawMessage `json:"error"`
		More    bool            `json:"more"`
		TTL     int64           `json:"ttl"`
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return answer{}, err
	}
	a := answer{
		kind: m.Type, id: strings.Trim(string(m.ID), `"`), channel: m.Channel, pattern: m.Pattern,
		args: m.Args, more: m.More, ttl: milliseconds(m.TTL),
	}
	if m.Error != nil {
		f := readFailure(m.Error)
		a.failure, a.code, a.message = m.Error, f.Code, f.Message
	}
	return a, nil
}

// milliseconds of a server, which are bounded.
func milliseconds(n int64) time.Duration {
	const most = 24 * 365 * time.Hour
	return time.Duration(min(max(n, 0), most.Milliseconds()) * int64(time.Millisecond))
}

func (*juggler1) cancel(id string) []byte { return []byte(`{"type":"cancel","id":` + id + `}`) }

func (*juggler1) credit(id string, n int) []byte {
	return fmt.Appendf(nil, `{"type":"credit","id":%s,"credit":%d}`, id, n)
}

// welcome is the first message of a server.
type welcome struct {
	Type       string `json:"type"`
	Connection string `json:"connection"`
	TTL        int64  `json:"ttl"`
	Auth       int64  `json:"auth"` // above 0: nothing is allowed yet
	Limits     struct {
		Message int `json:"message"`
	} `json:"limits"`
}

// readWelcome reads it.
//
// Errors: of anything else, and of a server that wants another token than the handshake
// had.
func readWelcome(body []byte) (w welcome, err error) {
	err = json.Unmarshal(body, &w)
	switch {
	case err != nil:
	case w.Type != "welcome":
		err = fmt.Errorf("its first message is %.40q", w.Type)
	case w.Auth > 0:
		err = errors.New("the server wants a token")
	}
	return w, err
}
