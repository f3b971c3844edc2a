package pod

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// makeNetwork starts the loopback, and gives it the addresses of the pod and of the API server. There is no route to any
// other address.
func makeNetwork(p Pod) error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_LOOPBACK)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("start the loopback: %w", err)
	}
	for n, address := range []netip.Addr{p.Address, p.Server.Addr()} {
		if err := assign(socket, fmt.Sprintf("lo:%d", n), address); err != nil {
			return fmt.Errorf("give the loopback the address %s: %w", address, err)
		}
	}
	return nil
}

// assign gives an interface a single address.
func assign(socket int, name string, address netip.Addr) error {
	change := func(request uint, value []byte) error {
		r, err := unix.NewIfreq(name)
		if err == nil {
			err = r.SetInet4Addr(value)
		}
		if err == nil {
			err = unix.IoctlIfreq(socket, request, r)
		}
		return err
	}
	if err := change(unix.SIOCSIFADDR, address.AsSlice()); err != nil {
		return err
	}
	return change(unix.SIOCSIFNETMASK, []byte{255, 255, 255, 255}) // not that of a class, as if all were local
}
