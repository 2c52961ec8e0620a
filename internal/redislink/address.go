package redislink

import (
	"errors"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// AnswerWithin bounds how long Redis may take to answer.
const AnswerWithin = 10 * time.Second

// ClientOption reads an address: HOST:PORT, redis://USER:PASSWORD@HOST:PORT/DB, rediss://
// with TLS, or unix:///PATH.
//
// Errors: one line, with no password in it.
func ClientOption(address string) (rueidis.ClientOption, error) {
	o := rueidis.ClientOption{InitAddress: []string{address}}
	if strings.ContainsAny(address, "/@") { // no HOST:PORT: it may have a password
		parsed, err := rueidis.ParseURL(address)
		if err != nil {
			return o, errors.New("redis: not an address such as redis://USER:PASSWORD@HOST:PORT/DB, rediss:// with TLS, unix:///PATH")
		}
		o = parsed
	}
	o.ForceSingleClient, o.DisableCache, o.PipelineMultiplex = true, true, -1
	o.ConnWriteTimeout = AnswerWithin
	o.Dialer.Timeout, o.Dialer.KeepAlive = AnswerWithin/2, AnswerWithin
	return o, nil
}
