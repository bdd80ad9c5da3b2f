import { fromBase64, toBase64, type Bytes } from '../../protocol/bytes.ts'
import { MalformedEvidence } from '../../protocol/malformed-evidence.ts'

const BEGIN = '-----BEGIN CERTIFICATE-----'
const END = '-----END CERTIFICATE-----'
const MAX_PEM_CHARS = 65_536

export interface PemBlock {
  readonly der: Bytes
  /** The comment line before the block, without its `# `. */
  readonly comment: string | undefined
}

/**
 * Reads the certificates of a PEM file in their order (RFC 7468): blocks of base64, each preceded by at most one
 * comment line `# text`, and nothing else but blank lines.
 * @throws MalformedEvidence when the input is malformed
 */
export function readPem(text: string): PemBlock[] {
  if (text.length > MAX_PEM_CHARS) throw malformed('too large')
  const blocks: PemBlock[] = []
  let comment: string | undefined
  let open: string[] | undefined
  for (const line of text.replaceAll('\r\n', '\n').split('\n')) {
    if (open !== undefined && line === END) {
      blocks.push({ der: decode(open), comment })
      open = comment = undefined
    } else if (open !== undefined && line !== '' && line.length <= 76) open.push(line)
    else if (open === undefined && line === BEGIN) open = []
    else if (open === undefined && comment === undefined && line.startsWith('# ')) {
      comment = line.slice(2)
    } else if (open !== undefined || line !== '') {
      throw malformed('text that belongs to no certificate')
    }
  }
  if (open !== undefined || comment !== undefined) throw malformed('certificate without an end')
  return blocks
}

/** Formats one certificate as a PEM file, with a line end after it. */
export function derToPem(certificate: Bytes): string {
  const lines = toBase64(certificate).match(/.{1,64}/g) ?? []
  return [BEGIN, ...lines, END, ''].join('\n')
}

function decode(lines: readonly string[]): Bytes {
  try {
    return fromBase64(lines.join(''))
  } catch {
    throw malformed('not standard base64')
  }
}

function malformed(reason: string): MalformedEvidence {
  return new MalformedEvidence('PEM', reason)
}
