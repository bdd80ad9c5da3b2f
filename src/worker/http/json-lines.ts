import type { EventSink } from './event-log.ts'

/**
 * Writes a JSON line for each event, and those that come together in one piece: a call of the console costs three times as much as
 * making a line.
 */
export function jsonLines(write: (text: string) => void): EventSink {
  let written = { at: Number.NaN, text: '' }
  return (events) => {
    const lines = events.map(({ event, fields, at }) => {
      // Events of one millisecond are many, and writing a time costs as much as the rest of the line.
      if (at !== written.at) written = { at, text: new Date(at).toISOString() }
      return JSON.stringify({ at: written.text, event, ...fields })
    })
    write(lines.join('\n'))
  }
}
