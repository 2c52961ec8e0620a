package service

import (
	"os"
	"time"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/worker"
)

// ownFiles is the folder that lists the open files of this process.
const ownFiles = "/proc/self/fd"

// Live implements admin.Observer.
func (s *service) Live() admin.Live {
	live := admin.NewLive(s.relay.Stats(), s.began)
	live.Files, live.FilesLimit = filesNow(), admin.OpenFiles()
	var used map[int]time.Duration
	if s.autoscale != nil {
		if m := s.autoscale.measure(time.Now()); m != nil {
			live.Load, used = &m.sample, m.cpu
		}
	}
	workers := make(map[string]worker.Status)
	for _, w := range s.fleet() {
		workers[w.Name] = w
	}
	for _, e := range s.relay.Rank().Endpoints {
		w := workers[e.Name]
		live.Workers = append(live.Workers, admin.LiveWorker{
			Worker: e.Name, Slots: e.Limit, InFlight: e.InFlight, Pace: e.Pace, Slow: e.Slow,
			CPUSeconds: used[w.PID].Seconds(), NoHealth: w.NoHealth, LastLines: w.LastLines,
		})
		delete(workers, e.Name)
	}
	for name, w := range workers { // never ready
		if w.State == worker.Vacant {
			continue
		}
		live.Workers = append(live.Workers, admin.LiveWorker{Worker: name, Pace: 1, LastLines: w.LastLines})
	}
	if s.scrape != nil {
		live.Pages = s.scrape.scraper.Counts()
	}
	live.Certificates = make(map[string]float64)
	for file, left := range s.expiring() {
		live.Certificates[file] = left.Seconds()
	}
	return live
}

// filesNow is how many files this process has open; 0 where nobody tells. Linux tells by the
// size of the folder, since 6.2.
func filesNow() int {
	if info, err := os.Stat(ownFiles); err == nil && info.Size() > 0 {
		return int(info.Size())
	}
	folder, err := os.Open(ownFiles)
	if err != nil {
		return 0
	}
	defer folder.Close()
	names, _ := folder.Readdirnames(-1) // those that could be read
	return len(names)
}
