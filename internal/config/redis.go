package config

import (
	"errors"
	"strings"
)

// Redis is where calls and results are, and where events are; Events is empty if that is
// the same. Empty: all is in one process. Both may hold a password.
type Redis struct{ Calls, Events string }

// redisAddresses is the kind of *Redis fields: one address, or two with a blank between.
// Nobody is shown them.
func redisAddresses() value[Redis] {
	return value[Redis]{
		read: func(into *Redis, text string) error {
			addresses := strings.Fields(text)
			switch {
			case text == none:
				addresses = nil
			case !forms["secret"].MatchString(text):
				return errors.New("has a control character") // it is not repeated
			case len(addresses) == 0 || len(addresses) > 2:
				return errors.New("is not one address, or two")
			}
			addresses = append(addresses, "", "")
			*into = Redis{addresses[0], addresses[1]}
			return nil
		},
		write: func(r Redis) string {
			if r.Calls == "" {
				return none
			}
			return hidden
		},
		legal: "an address, that of events behind it if it is another one, or " + none,
	}
}
