/** Strings that must not turn up anywhere, and the forms in which they might. */

/** Letters and digits only, so that no escaping changes them; long enough to be no accident. */
export const MARKERS = {
  prompt: 'ZQPROMPTZQ7f3a91',
  system: 'ZQSYSTEMZQ7f3a92',
  toolArguments: 'ZQTOOLARGSZQ7f3a93',
  completion: 'ZQCOMPLETIONZQ7f3a94',
  reasoning: 'ZQREASONINGZQ7f3a95',
  completionTool: 'ZQANSWERTOOLZQ7f3a96',
  providerError: 'ZQPROVIDERERRORZQ7f3a97',
  providerHeader: 'ZQPROVIDERHEADERZQ7f3a98',
  file: 'ZQFILECONTENTZQ7f3a99',
  fileName: 'ZQFILENAMEZQ7f3a9a',
  clientHeader: 'ZQCLIENTHEADERZQ7f3a9b',
  path: 'ZQPATHZQ7f3a9c',
  query: 'ZQQUERYZQ7f3a9d',
  model: 'ZQMODELZQ7f3a9e',
  member: 'ZQMEMBERZQ7f3a9f',
  wrongKey: 'ZQWRONGKEYZQ7f3aa0',
  providerKey: 'ZQPROVIDERKEYZQ7f3aa1',
  adminBody: 'ZQADMINBODYZQ7f3aa2',
} as const

/** What is looked for on behalf of one secret. */
export interface Needle {
  readonly name: string
  readonly forms: readonly Buffer[]
}

/** The secret as it is, in hex, in UTF-16, and in base64 at each of the three places it may begin. */
export function needle(name: string, secret: string): Needle {
  const bytes = Buffer.from(secret)
  const base64 = [0, 1, 2].map((offset) => {
    const text = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64')
    // The first and last characters depend on what stands beside the secret.
    return Buffer.from(text.slice(offset === 0 ? 0 : 4, -4))
  })
  return {
    name,
    forms: [bytes, Buffer.from(bytes.toString('hex')), Buffer.from(secret, 'utf16le'), ...base64],
  }
}

/** The names of the needles that are in a haystack, base64 of the URL alphabet included. */
export function found(needles: readonly Needle[], haystack: Buffer): string[] {
  const plain = Buffer.from(
    haystack.toString('latin1').replaceAll('-', '+').replaceAll('_', '/'),
    'latin1',
  )
  return needles
    .filter(({ forms }) => forms.some((form) => haystack.includes(form) || plain.includes(form)))
    .map(({ name }) => name)
}
