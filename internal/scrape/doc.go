// Package scrape makes one Prometheus page of those of many processes.
//
// Start from Store and Scraper. How it works by default:
//
//  1. A Scraper asks each process for its page, over HTTP: text, OpenMetrics or
//     protobuf. A page that is too long, too slow or broken costs that page alone;
//     what stands in front of a fault counts.
//  2. A Store adds up what the processes show. Counters and histograms never fall:
//     what a process had counted stays when it ends or begins again at zero.
//  3. Gauges are summed, or what Options say for their names. What is about one
//     process (process_*, go_*, nodejs_*, *_info, summaries, what has no type) is
//     shown for each worker, with a label that names it.
//  4. Gather returns what there is now, for a page in any format.
//
// It knows no worker and no call. Not there: timestamps of samples, which are left
// out, and times of creation as OpenMetrics has them.
package scrape
