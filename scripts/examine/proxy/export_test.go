package proxy

// URL is where the proxy listens.
func (p *Proxy) URL() string { return p.url }

// Answer is the API server's answer; nil before there is one.
func (x *Exchange) Answer() *Answer { return x.answer }

// Waiting returns how many events were read and not passed on.
func (s *Stream) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.frames)
}
