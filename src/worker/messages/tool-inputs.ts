import { fromUtf8, type Bytes } from '../../protocol/bytes.ts'
import { JsonCursor } from '../json/scan.ts'

/**
 * The inputs of all blocks of a body that was parsed already, as they are written there, each under its place, such as
 * `messages[1].content[0]`. Of a repeated member the last one counts.
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
