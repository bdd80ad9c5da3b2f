import { concatBytes, fromHex, type Bytes } from '../../protocol/bytes.ts'

/**
 * The 16 bytes of a GUID as UEFI stores it: the first three groups little-endian, the rest as written
 * (UEFI specification, appendix A).
 */
export function guidBytes(text: string): Bytes {
  const [low = '', middle = '', high = '', ...rest] = text.split('-')
  return concatBytes(
    fromHex(low).toReversed(),
    fromHex(middle).toReversed(),
    fromHex(high).toReversed(),
    fromHex(rest.join('')),
  )
}
