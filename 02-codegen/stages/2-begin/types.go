package v1

// MyWebSpec is the website that the user wants.
type MyWebSpec struct {
	// image is the container image that serves the page.
	//
	// +required
	Image string `json:"image"`
}
