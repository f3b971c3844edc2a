package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// print writes one table, with the ways side by side. Of the replicas it shows the one that needs most.
func print(all []result) {
	row := func(name string, value func(result) string) {
		fmt.Printf("%-46s", name)
		for _, r := range all {
			fmt.Printf(" %12s", value(r))
		}
		fmt.Println()
	}
	number := func(format string, of func(result) float64) func(result) string {
		return func(r result) string { return fmt.Sprintf(format, of(r)) }
	}
	const mib = 1 << 20
	fmt.Printf("%d MyWebs in %d namespaces, three replicas\n", all[0].MyWebs, min(namespaces, all[0].MyWebs))
	row("way", func(r result) string { return r.Way })
	row("MiB received by a replica", number("%.1f", most(received)))
	row("objects in its cache", number("%.0f", most(objects)))
	row("MiB of memory of it", number("%.0f", most(resident)))
	row("seconds of processor of it", number("%.1f", most(func(r replica) float64 { return r.CPU.Seconds() })))
	row("seconds until its cache had synced", number("%.1f", most(func(r replica) float64 { return r.Sync })))
	row("milliseconds until an edit is served",
		number("%.0f", func(r result) float64 { return float64(r.Edit.Milliseconds()) }))
	row("lists at start, of all three", number("%.0f", func(r result) float64 { return r.Lists }))
	row("watches at start, of all three", number("%.0f", func(r result) float64 { return r.Watches }))
	row("writes for a MyWeb", number("%.2f", func(r result) float64 { return r.Writes }))
	row("milliseconds of the API server for a new MyWeb",
		number("%.0f", func(r result) float64 { return float64(r.Created.Milliseconds()) }))
	row("MiB of memory of the API server", number("%.0f", func(r result) float64 { return float64(r.APIServer) / mib }))
	row("MiB of memory of etcd", number("%.0f", func(r result) float64 { return float64(r.Etcd) / mib }))
	row("MiB in etcd's database", number("%.0f", func(r result) float64 { return r.Stored / mib }))
	row("MiB of memory of the sharder", number("%.0f", func(r result) float64 { return float64(r.Sharder) / mib }))
	one, shards := all[0], all[1]
	fmt.Printf("shards / one leader: bytes %.2f, objects %.2f\n", most(received)(shards)/most(received)(one),
		most(objects)(shards)/most(objects)(one))
}

// limits prints where the next limits are, by the results of one leader with the two largest numbers of MyWebs.
func limits(all []result) {
	of := []result{{}} // 0 MyWebs need nothing
	for _, r := range all {
		if r.Way == ways[0].name {
			of = append(of, r)
		}
	}
	large, small, before := of[len(of)-1], of[len(of)-2], of[len(of)-3]
	slope := func(value func(result) float64) float64 {
		return (value(large) - value(small)) / float64(large.MyWebs-small.MyWebs)
	}
	const kib = 1 << 10
	stored := large.Stored / kib / float64(large.MyWebs) // with old revisions, which etcd removes every five minutes
	heap := slope(most(resident)) * kib
	bytes := slope(most(received)) * kib
	server := slope(func(r result) float64 { return float64(r.APIServer) }) / kib
	fmt.Printf("from %d to %d MyWebs, for each MyWeb with its three children\n", small.MyWebs, large.MyWebs)
	fmt.Printf("  KiB in etcd's database      %6.1f, so 8 GiB hold %8.0f MyWebs\n", stored, 8*kib*kib/stored)
	fmt.Printf("  KiB of memory of a leader   %6.1f, so 4 GiB hold %8.0f MyWebs\n", heap, 4*kib*kib/heap)
	fmt.Printf("  KiB received at its start   %6.1f, so 100,000 are %5.0f MiB\n", bytes, 100_000*bytes/kib)
	fmt.Printf("  KiB of the API server       %6.1f, so 16 GiB hold %7.0f MyWebs\n", server, 16*kib*kib/server)
	// A new MyWeb costs more when there are more, so all of them cost the square.
	middle := func(from, to result) float64 { return float64(from.MyWebs+to.MyWebs) / 2 }
	rise := (large.Created - small.Created).Hours() / (middle(small, large) - middle(before, small))
	base := large.Created.Hours() - rise*middle(small, large)
	fmt.Printf("milliseconds of the API server for a new MyWeb  %d, and until %d MyWebs %d,\n",
		large.Created.Milliseconds(), small.MyWebs, small.Created.Milliseconds())
	fmt.Printf("  so 100,000 MyWebs need %.0f hours of a processor\n", 100_000*(base+rise*100_000/2))
	fmt.Printf("node ports                            a cluster has %7d, by default %d\n", 1<<16-1, 32767-30000+1)
}

// most returns the number of the replica that needs most.
func most(of func(replica) float64) func(result) float64 {
	return func(r result) (most float64) {
		for _, one := range r.Replicas {
			most = max(most, of(one))
		}
		return most
	}
}

func received(r replica) float64 { return float64(r.Received) / (1 << 20) }
func objects(r replica) float64  { return float64(r.Objects) }
func resident(r replica) float64 { return float64(r.Memory) / (1 << 20) }

// pictures draws a curve for each of three numbers, with a line for each way.
func pictures(into string, all []result) error {
	for _, picture := range []struct {
		file, title string
		of          func(replica) float64
	}{
		{"received.svg", "MiB received by a replica until its cache has synced", received},
		{"objects.svg", "objects in the cache of a replica", objects},
		{"memory.svg", "MiB of memory of a replica", resident},
	} {
		lines := map[string][][2]float64{}
		for _, r := range all {
			lines[r.Way] = append(lines[r.Way], [2]float64{float64(r.MyWebs), most(picture.of)(r)})
		}
		if err := os.WriteFile(filepath.Join(into, picture.file), []byte(curve(picture.title, lines)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// curve returns an SVG with the points of each way, which are joined by a line that begins at 0 MyWebs.
func curve(title string, lines map[string][][2]float64) string {
	const width, height, left, bottom = 640, 360, 70, 320
	var maxX, maxY float64
	for _, line := range lines {
		for _, p := range line {
			maxX, maxY = max(maxX, p[0]), max(maxY, p[1])
		}
	}
	x := func(v float64) float64 { return left + v/maxX*(width-left-110) }
	y := func(v float64) float64 { return bottom - v/maxY*(bottom-50) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+
		"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/><text x="%d" y="24" font-size="15">%s</text>`+"\n",
		width, height, left, title)
	fmt.Fprintf(&b, `<path d="M%d 40V%dH%d" fill="none" stroke="black"/>`+"\n", left, bottom, width-100)
	for _, part := range []float64{0, 0.5, 1} {
		fmt.Fprintf(&b, `<text x="%d" y="%.0f" text-anchor="end">%.0f</text>`, left-6, y(part*maxY)+4, part*maxY)
		fmt.Fprintf(&b, `<text x="%.0f" y="%d" text-anchor="middle">%.0f</text>`+"\n", x(part*maxX), bottom+18, part*maxX)
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">MyWebs</text>`+"\n", width-20, bottom+18)
	for at, way := range ways {
		colour := []string{"#c0392b", "#2471a3", "#7d8c1f"}[at]
		points := lines[way.name]
		if len(points) == 0 {
			continue
		}
		path := ""
		for n, p := range points {
			path += fmt.Sprintf("%s%.1f %.1f", []string{"M", "L"}[min(n, 1)], x(p[0]), y(p[1]))
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`, x(p[0]), y(p[1]), colour)
		}
		last := points[len(points)-1]
		fmt.Fprintf(&b, `<path d="%s" fill="none" stroke="%s" stroke-width="2"/>`, path, colour)
		fmt.Fprintf(&b, `<text x="%.0f" y="%.0f" fill="%s">%s</text>`+"\n", x(last[0])+8, y(last[1])+16-12*float64(at),
			colour, way.name)
	}
	b.WriteString("</svg>\n")
	return b.String()
}
