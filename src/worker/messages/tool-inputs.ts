import { fromUtf8, type Bytes } from '../../protocol/bytes.ts'
import { JsonCursor } from '../json/scan.ts'

/**
 * The raw text of the tool inputs in a valid body, by the place of their block, such as `messages[1].content[0]`. If a
 * member is repeated, the last one counts.
 */
export function toolInputs(body: Bytes): ReadonlyMap<string, string> {
  const inputs = new Map<string, string>()
  const cursor = new JsonCursor(body)
  const eachObject = (visit: (index: number) => void) => {
    if (cursor.peek() !== 'array') return
    cursor.array((index) => {
      if (cursor.peek() === 'object') visit(index)
    })
  }
  const readBlock = (place: string) => {
    cursor.object((name) => {
      if (name !== 'input') return
      const { start, end } = cursor.skip()
      inputs.set(place, fromUtf8(body.subarray(start, end)))
    })
  }
  const readMessage = (at: string) => {
    cursor.object((name) => {
      if (name === 'content') eachObject((index) => readBlock(`${at}.content[${index}]`))
    })
  }
  cursor.object((name) => {
    if (name === 'messages') eachObject((index) => readMessage(`messages[${index}]`))
  })
  return inputs
}
