package config

import (
	"errors"
	"strings"
	"unicode"
)

// Redis is where calls and results are, and where events are; Events is empty if that is
// the same. Empty: all is in one process. Both may hold a password.
type Redis struct{ Calls, Events string }

// redisAddresses is the kind of *Redis fields: one address, or two with a blank between.
// Nobody is shown them.
type redisAddresses struct{}

func (redisAddresses) set(field any, text string) error {
	addresses := strings.Fields(text)
	switch {
	case text == none:
		addresses = nil
	case strings.ContainsFunc(text, unicode.IsControl):
		return errors.New("has a control character") // it is not repeated
	case len(addresses) == 0 || len(addresses) > 2:
		return errors.New("is not one address, or two")
	}
	addresses = append(addresses, "", "")
	*field.(*Redis) = Redis{addresses[0], addresses[1]}
	return nil
}

func (redisAddresses) show(field any) string {
	if field.(*Redis).Calls == "" {
		return none
	}
	return hidden
}

func (redisAddresses) allowed() string {
	return "an address, that of events behind it if it is another one, or " + none
}
