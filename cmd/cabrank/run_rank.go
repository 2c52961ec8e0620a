package main

import (
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/rank"
)

// rankOptions translates the settings of the rank but for the lanes, of which
// the relay has a part; config has checked their words.
func rankOptions(cfg *config.Config) rank.Options {
	o := rank.Options{QueueLength: cfg.Queue.Length, StreamSlots: cfg.StreamSlots}
	o.Balance, _ = rank.ParseBalance(cfg.Balance)
	if !cfg.Queue.Shed {
		o.Admit = rank.BoundedLength
	}
	if !cfg.Queue.NewestFirst {
		o.Order = rank.FIFO
	}
	return o
}

// slotBounds returns between what the slots of an endpoint adapt; 0 and 0 if
// they are fixed.
func slotBounds(w config.Workers) (fewest, most int) {
	if !w.AutoSlots {
		return 0, 0
	}
	return w.SlotsMin, w.SlotsMax
}

// onCancel translates what becomes of the slot of a call that is cancelled; 0
// for no word.
func onCancel(word string) rank.OnCancel {
	switch word {
	case "hold":
		return rank.Hold
	case "free":
		return rank.Free
	case "finish":
		return rank.Finish
	default:
		return 0
	}
}
