package redis

import (
	"encoding/json"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/cabrank/cabrank/internal/redislink"
)

// say sends commands, and then publishes a word about a call to the callees of package
// callee. The word is lost if Redis is: callees end by their deadlines, and ask for credit.
func (b *Broker) say(w *waiter, word redislink.Word, commands ...rueidis.Completed) {
	payload, err := json.Marshal(word)
	if err != nil {
		return
	}
	list := redislink.CallsKey(w.call.URI)
	publish := b.calls.client.B().Publish().Channel(redislink.WordsChannel(w.call.URI)).Message(string(payload)).Build().SetSlot(list)
	b.calls.outlet(list).add(len(payload), func(error) {}, append(commands, publish)...)
}

// left takes a call back: its callee is told, and a later one finds the call expired.
func (b *Broker) left(w *waiter) {
	b.say(w, redislink.Word{ID: w.id, Cancel: true},
		b.calls.client.B().Del().Key(redislink.CallTimeoutKey(w.call.URI, w.id)).Build())
}

// passCredit passes on the sum of all credit so far, and stores it for a callee that takes the
// call later.
func (b *Broker) passCredit(w *waiter, total int) {
	b.say(w, redislink.Word{ID: w.id, Credit: total},
		b.calls.client.B().Set().Key(redislink.CreditKey(w.call.URI, w.id)).Value(strconv.Itoa(total)).
			PxMilliseconds(max(w.call.Timeout.Milliseconds(), 1)).Build())
}

// over forgets the credit of a call that has ended.
func (b *Broker) over(w *waiter) {
	if w.call.Stream != nil {
		key := redislink.CreditKey(w.call.URI, w.id)
		b.calls.outlet(redislink.CallsKey(w.call.URI)).add(0, func(error) {}, b.calls.client.B().Del().Key(key).Build())
	}
}
