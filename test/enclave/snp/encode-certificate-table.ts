import { concatBytes, fromHex, type Bytes } from '../../../src/protocol/bytes.ts'

/** The GUIDs of the table as RFC 4122 writes them. */
export const GUID = {
  vcek: fromHex('63da758de6644564adc5f4b93be8accd'),
  vlek: fromHex('a8074bc2a25a483eaae639c045a0b8a1'),
  ask: fromHex('4ab7b379bbac4fe4a02f05aef327c782'),
  ark: fromHex('c0b406a4a803495297433fb6014cd0ae'),
  crl: fromHex('92f81bc358114d3d97ffd19f88dc67ea'),
}

/** The same with the first three parts little-endian. */
export const MIXED_GUID = {
  vcek: fromHex('8d75da6364e66445adc5f4b93be8accd'),
  vlek: fromHex('c24b07a85aa23e48aae639c045a0b8a1'),
  ask: fromHex('79b3b74aacbbe44fa02f05aef327c782'),
  ark: fromHex('a406b4c003a8524997433fb6014cd0ae'),
  crl: fromHex('c31bf89211583d4d97ffd19f88dc67ea'),
}

/** A certificate table as a host writes it. */
export function encodeCertificateTable(entries: readonly (readonly [Bytes, Bytes])[]): Bytes {
  const header = new Uint8Array(24 * (entries.length + 1))
  const view = new DataView(header.buffer)
  let offset = header.length
  entries.forEach(([guid, data], index) => {
    header.set(guid, 24 * index)
    view.setUint32(24 * index + 16, offset, true)
    view.setUint32(24 * index + 20, data.length, true)
    offset += data.length
  })
  return concatBytes(header, ...entries.map(([, data]) => data))
}
