package report

import (
	"bytes"
	"fmt"
	"html/template"
	"image/color"
	"math"
	"regexp"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// A figure is a plot of lines, or of bars where there are kinds to count.
type figure struct {
	ID, Title, X, Y string
	Series          []series
	// Step lines go up in steps.
	Step  bool
	Kinds []string
}

// Bars reports whether the figure has bars.
func (f figure) Bars() bool { return len(f.Kinds) > 0 }

// A series belongs to an implementation; its style is the same in all figures.
type series struct {
	Name   string
	Style  int
	Points plotter.XYs // of a line
	Values []float64   // of bars, for each kind
}

func xy(x, y float64) plotter.XY { return plotter.XY{X: x, Y: y} }

// Colours that stand for those of the page, which knows whether it is light or dark.
var (
	ink  = color.NRGBA{0x0A, 0x0A, 0x0A, 0xFF}
	soft = color.NRGBA{0x0B, 0x0B, 0x0B, 0xFF}
	grid = color.NRGBA{0x0C, 0x0C, 0x0C, 0xFF}
)

// styles is how many there are. Each has a colour, dashes and a mark of its own, and bars a shade.
const styles = 6

var (
	dashes = [styles][]vg.Length{nil, {7, 3}, {2, 2}, {9, 3, 2, 3}, {4, 2}, {1, 3}}
	marks  = [styles]draw.GlyphDrawer{
		draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.RingGlyph{}, draw.SquareGlyph{}, draw.CrossGlyph{}}
	shades = [styles]string{"1", ".3", "0", ".65", ".15", ".5"}
)

func (s series) style() int         { return (s.Style%styles + styles) % styles }
func (s series) color() color.NRGBA { return color.NRGBA{0x01, uint8(s.style() + 1), 0xAA, 0xFF} }
func (s series) shade() color.NRGBA { return color.NRGBA{0x02, uint8(s.style() + 1), 0xAA, 0xFF} }
func (s series) mark() draw.GlyphStyle {
	return draw.GlyphStyle{Color: s.color(), Radius: 2.6, Shape: marks[s.style()]}
}
func (s series) line() draw.LineStyle {
	return draw.LineStyle{Color: s.color(), Width: 1.6, Dashes: dashes[s.style()]}
}

// Width of all figures, in units of the drawing: small, so that letters can be read on a phone.
const width = 340

// SVG draws the figure.
func (f figure) SVG() template.HTML {
	p := plot.New()
	p.BackgroundColor = color.Transparent
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font, axis.Tick.Label.Font = sans(12), sans(11)
		axis.Label.TextStyle.Color, axis.Tick.Label.Color = ink, soft
		axis.Color, axis.Tick.Color, axis.Tick.Marker = soft, soft, linear{}
		axis.Label.Padding = 4
	}
	p.X.Label.Text, p.Y.Label.Text = f.X, f.Y
	height := vg.Length(245)
	if f.Bars() {
		height = f.bars(p)
	} else {
		f.lines(p)
	}
	c := vgsvg.New(width, height)
	area := draw.New(c)
	p.Draw(draw.Crop(area, 2, -14, 2, -8)) // space for half of the last label
	return inline(c, width, height, f.ID, f.Title+": "+f.described())
}

// described says what the figure compares, for those who hear it.
func (f figure) described() string {
	var names []string
	for _, s := range f.Series {
		names = append(names, s.Name)
	}
	what := f.Y + " over " + f.X
	if f.Bars() {
		what = f.X
	}
	return what + ", for " + and(names) + "; the table has the numbers"
}

func sans(size vg.Length) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
}

func gridLines() *plotter.Grid {
	g := plotter.NewGrid()
	g.Vertical = draw.LineStyle{Color: grid, Width: 0.75}
	g.Horizontal = g.Vertical
	return g
}

func (f figure) lines(p *plot.Plot) {
	p.Add(gridLines())
	least, most, top := math.Inf(1), 0.0, 0.0
	for _, s := range f.Series {
		for _, at := range s.Points {
			least, most, top = min(least, at.X), max(most, at.X), max(top, at.Y)
		}
	}
	logarithmic := f.Step && least > 0 && most/least > 50
	for _, s := range f.Series {
		points := s.Points
		if first := points[0]; f.Step && first.Y > 0 {
			points = append(plotter.XYs{{X: first.X}}, points...)
			if !logarithmic {
				points[0].X = 0
			}
		}
		line := &plotter.Line{XYs: points, LineStyle: s.line()}
		marked := points
		if f.Step {
			marked = spread(points)
		}
		if f.Step && len(points) < 60 { // more steps than that are only rough to look at
			line.StepStyle = plotter.PostStep
		}
		p.Add(line, &plotter.Scatter{XYs: marked, GlyphStyle: s.mark()})
	}
	p.Y.Min, p.Y.Max = 0, ceiling(top)
	p.X.Min, p.X.Max = 0, ceiling(most)
	if logarithmic {
		p.X.Min, p.X.Max = least, most
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, logTicks{}
	}
}

// spread picks some points of a long line for its marks, evenly by their height.
func spread(points plotter.XYs) (marked plotter.XYs) {
	last := points[len(points)-1]
	for _, at := range points {
		if at.Y > 0 && at.Y >= float64(len(marked)+1)*last.Y/5 {
			marked = append(marked, at)
		}
	}
	return marked
}

// bars draws a group for each kind, the first at the top, and returns the height that they need.
func (f figure) bars(p *plot.Plot) vg.Length {
	const thick, gap = 11, 9
	group := vg.Length(len(f.Series)) * thick
	labels := make([]string, len(f.Kinds))
	for i, kind := range f.Kinds {
		labels[len(labels)-1-i] = shortened(clean(kind))
	}
	lines := gridLines()
	lines.Horizontal.Width = 0
	p.Add(lines)
	p.NominalY(labels...)
	p.Y.Tick.Label.Font, p.Y.Tick.Label.Color = sans(11), ink
	top := 0.0
	for n, s := range f.Series {
		values := make(plotter.Values, len(s.Values))
		at := plotter.XYLabels{}
		for i, v := range s.Values {
			values[len(values)-1-i] = v
			top = max(top, v)
			at.XYs = append(at.XYs, xy(v, float64(len(values)-1-i)))
			at.Labels = append(at.Labels, digits(v))
		}
		offset := group/2 - (vg.Length(n)+0.5)*thick
		p.Add(&plotter.BarChart{Values: values, Width: thick - 2, Color: s.shade(), Offset: offset, XMin: 0, Horizontal: true,
			LineStyle: draw.LineStyle{Color: s.color(), Width: 1}})
		style := text.Style{Color: ink, Font: sans(10), YAlign: draw.YCenter, Handler: p.X.Label.TextStyle.Handler}
		var all []text.Style
		for range at.Labels {
			all = append(all, style)
		}
		p.Add(&plotter.Labels{XYs: at.XYs, Labels: at.Labels, TextStyle: all, Offset: vg.Point{X: 4, Y: offset}})
	}
	p.X.Min, p.X.Max = 0, ceiling(top*1.12) // space for the value of the longest
	p.Y.Min, p.Y.Max = -0.5, float64(len(f.Kinds))-0.5
	return vg.Length(len(f.Kinds))*(group+gap) + 46
}

// shortened leaves space for the bars.
func shortened(label string) string {
	if r := []rune(label); len(r) > 26 {
		return string(r[:25]) + "…"
	}
	return label
}

// Swatch is the series' mark in a legend.
func (f figure) Swatch(s series) template.HTML {
	c := vgsvg.New(34, 12)
	area := draw.New(c)
	if f.Bars() {
		area = draw.Crop(area, 2, -2, 2, -2)
		(&plotter.BarChart{Color: s.shade(), LineStyle: draw.LineStyle{Color: s.color(), Width: 1}}).Thumbnail(&area)
	} else {
		(&plotter.Line{LineStyle: s.line()}).Thumbnail(&area)
		(&plotter.Scatter{GlyphStyle: s.mark()}).Thumbnail(&area)
	}
	return inline(c, 34, 12, "", "")
}

var (
	fontOf = regexp.MustCompile(`font-family:[^"]*?font-size`)
	lineOf = regexp.MustCompile(`#01(\d\d)AA`)
	page   = strings.NewReplacer("#0A0A0A", "currentColor", "#0B0B0B", "var(--muted)", "#0C0C0C",
		"var(--line)", "\n\t", " ")
)

// inline makes a drawing part of a page: its letters and colours are the page's.
func inline(c *vgsvg.Canvas, w, h vg.Length, id, title string) template.HTML {
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		panic(err) // a buffer takes everything
	}
	_, drawing, _ := strings.Cut(b.String(), "xlink\">")
	drawing = page.Replace(fontOf.ReplaceAllString(drawing, "font-size"))
	drawing = lineOf.ReplaceAllString(drawing, "var(--s$1)")
	for style, opacity := range shades {
		drawing = strings.ReplaceAll(drawing, fmt.Sprintf("#02%02dAA", style+1),
			fmt.Sprintf("var(--s%02d);fill-opacity:%s", style+1, opacity))
	}
	head := `aria-hidden="true"`
	if id != "" {
		head = fmt.Sprintf(`role="img" aria-labelledby="plot-%s"`, template.HTMLEscapeString(id))
		drawing = fmt.Sprintf(`<title id="plot-%s">%s</title>`, template.HTMLEscapeString(id),
			template.HTMLEscapeString(clean(title))) + drawing
	}
	return template.HTML(fmt.Sprintf(`<svg viewBox="0 0 %v %v" %s>`, float64(w), float64(h), head) + drawing)
}

// step is the distance of marks on an axis: 1, 2 or 5 times a power of ten, for about five of them.
func step(span float64) float64 {
	if span <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(span/5)))
	for _, s := range []float64{1, 2, 5} {
		if span/(s*power) <= 6 {
			return s * power
		}
	}
	return 10 * power
}

// ceiling is the next mark at or above a value.
func ceiling(v float64) float64 {
	if v <= 0 {
		return 1
	}
	return math.Ceil(v/step(v)-1e-9) * step(v)
}

// linear marks an axis evenly.
type linear struct{}

func (linear) Ticks(low, high float64) (ticks []plot.Tick) {
	s := step(high - low)
	for i := math.Ceil(low/s - 1e-9); i*s <= high+s*1e-9; i++ {
		ticks = append(ticks, plot.Tick{Value: i * s, Label: label(i * s)})
	}
	return ticks
}

// logTicks marks 1, 2 and 5 in each power of ten, or 1 alone when there are many powers.
type logTicks struct{}

func (logTicks) Ticks(low, high float64) (ticks []plot.Tick) {
	factors := []float64{1, 2, 5}
	if high/low > 2000 {
		factors = factors[:1]
	}
	for power := math.Pow(10, math.Floor(math.Log10(low))); power <= high; power *= 10 {
		for _, f := range factors {
			if v := f * power; v >= low && v <= high {
				ticks = append(ticks, plot.Tick{Value: v, Label: label(v)})
			}
		}
	}
	return ticks
}

func label(v float64) string {
	if math.Abs(v) >= 1000 {
		return number(int64(math.Round(v)))
	}
	return digits(v)
}
