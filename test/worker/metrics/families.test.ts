import { describe, expect, it } from 'vitest'
import { Counter, Histogram } from '../../../src/worker/metrics/families.ts'

describe('a metric', () => {
  it('keeps its values apart by all labels, and escapes them', () => {
    const counter = new Counter('c', 'Help.')
    counter.add({ route: 'a', kind: 'b"\n' })
    counter.add({ route: 'a', kind: 'b"\n' }, 2)
    counter.add({ route: 'ab', kind: '' })
    counter.add({ route: '', kind: 'ab' })
    expect(counter.render().split('\n').slice(2, -1)).toEqual([
      String.raw`c{route="a",kind="b\"\n"} 3`,
      'c{route="ab",kind=""} 1',
      'c{route="",kind="ab"} 1',
    ])
  })

  it('counts what goes beyond 2,000 combinations of labels together', () => {
    const counter = new Counter('c', 'Help.')
    const histogram = new Histogram('h', 'Help.', [1])
    for (let route = 0; route < 2_010; route += 1) {
      counter.add({ route })
      histogram.observe({ route }, 0.5)
    }
    counter.add({ route: 1_999 })
    const text = counter.render() + histogram.render()
    expect(text).toContain('c{route="1999"} 2\n')
    expect(text).toContain('c{overflow="true"} 10\n')
    expect(text).toContain('h_count{overflow="true"} 10\n')
    expect(text).not.toContain('"2000"')
  })
})
