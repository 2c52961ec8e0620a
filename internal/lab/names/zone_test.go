package names_test

import (
	"testing"

	"github.com/miekg/dns"

	"github.com/cabrank/cabrank/internal/lab/names"
)

// A mixed zone answers with all records, and each of them is the first now and then.
func TestMix(t *testing.T) {
	z, err := names.ServeZone("a.test. 1 IN A 127.0.0.1", "a.test. 1 IN A 127.0.0.2", "a.test. 1 IN A 127.0.0.3")
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	z.Mix()
	first := map[string]int{}
	for range 300 {
		answer := new(dns.Msg)
		answer.SetQuestion("a.test.", dns.TypeA)
		z.Answer(answer)
		if len(answer.Answer) != 3 {
			t.Fatalf("%d records", len(answer.Answer))
		}
		first[answer.Answer[0].(*dns.A).A.String()]++
	}
	for address, n := range first {
		if n < 50 || len(first) != 3 {
			t.Errorf("%s was the first %d times of 300", address, n)
		}
	}
}

// Whoever draws the id 0 is answered, too: one question in 65,536 has it.
func TestEveryIdIsAnswered(t *testing.T) {
	z, err := names.ServeZone("a.test. 1 IN A 127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	question := new(dns.Msg)
	question.SetQuestion("a.test.", dns.TypeA)
	question.Id = 0
	answer, _, err := new(dns.Client).ExchangeContext(t.Context(), question, z.Addr)
	if err != nil || len(answer.Answer) != 1 {
		t.Errorf("%v, %v", answer, err)
	}
}
