package client

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
)

// juggler0 is the dialect of the old servers. Source: docs/juggler.md.
type juggler0 struct{}

// newID returns a UUID of version 4.
func (juggler0) newID() string {
	var random [16]byte
	rand.Read(random[:])
	random[6], random[8] = random[6]&0x0f|0x40, random[8]&0x3f|0x80
	b := make([]byte, 0, 36)
	for i, end := range [5]int{4, 6, 8, 10, 16} {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, random[[5]int{0, 4, 6, 8, 10}[i]:end])
	}
	return string(b)
}

// number is the type of a request.
func (juggler0) number(k kind) int {
	switch k {
	case kindCall:
		return 1
	case kindPub:
		return 2
	case kindSub:
		return 3
	default:
		return 4
	}
}

// word is the kind of an answer.
func (juggler0) word(number int) kind {
	switch number {
	case 7:
		return kindNack
	case 8:
		return kindAck
	case 9:
		return kindRes
	case 10:
		return kindEvnt
	default:
		return kind(strconv.Itoa(number))
	}
}

func (j juggler0) frame(r request, id string) []byte {
	b := make([]byte, 0, 128+len(r.name)+len(r.args))
	b = fmt.Appendf(b, `{"meta":{"type":%d,"uuid":"%s"},"payload":{`, j.number(r.kind), id)
	key := `"channel":`
	if r.kind == kindCall {
		b = fmt.Appendf(b, `"timeout":%d,`, r.timeout.Nanoseconds())
		key = `"uri":`
	}
	b = appendText(append(b, key...), r.name)
	if r.args != nil {
		b = append(append(b, `,"args":`...), r.args...)
	}
	if r.pattern {
		b = append(b, `,"pattern":true`...)
	}
	return append(b, "}}"...)
}

func appendText(b []byte, text string) []byte {
	quoted, _ := json.Marshal(text) //nolint:errchkjson // texts always are JSON
	return append(b, quoted...)
}

func (j juggler0) parse(body []byte) (answer, error) {
	var m struct {
		Meta struct {
			Type int `json:"type"`
		} `json:"meta"`
		Payload struct {
			For     string          `json:"for"`
			Channel string          `json:"channel"`
			Pattern string          `json:"pattern"`
			Code    int             `json:"code"`
			Message string          `json:"message"`
			Args    json.RawMessage `json:"args"`
		} `json:"payload"`
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return answer{}, err
	}
	p := &m.Payload
	a := answer{
		kind: j.word(m.Meta.Type), id: p.For, channel: p.Channel, pattern: p.Pattern,
		args: p.Args, code: p.Code, message: p.Message,
	}
	if a.kind == kindRes {
		a.failure = wrappedFailure(a.args)
	}
	return a, nil
}

func (juggler0) cancel(string) []byte { return nil }

func (juggler0) credit(string, int) []byte { return nil }
