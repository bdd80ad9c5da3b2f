import type { ClientRequest, IncomingMessage } from 'node:http'

/** The provider answered with something that is no final answer of HTTP. */
export class MalformedAnswer extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'MalformedAnswer'
  }
}

/** Statuses that can be passed on (RFC 9110 section 15); Node's parser lets any number through. */
const MIN_STATUS = 200
const MAX_STATUS = 599

/** Interim answers come one or two at a time; a peer that sends more would keep the caller waiting. */
const MAX_INTERIM = 16

/**
 * The head of the one answer to a request, whatever its peer sends: interim answers are passed over, and anything
 * that cannot be passed on ends the connection. From here on no event of the request can go unheard.
 * @throws MalformedAnswer when the answer cannot be passed on
 * @throws Error when the connection fails; it is the error that ended the connection
 */
export function finalAnswer(sent: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const refuse = (message: string) => {
      reject(new MalformedAnswer(message))
      sent.destroy()
    }
    let interim = 0
    sent.on('error', reject)
    sent.once('close', () => reject(new Error('the connection ended without an answer')))
    sent.on('information', () => {
      interim += 1
      if (interim > MAX_INTERIM) refuse('too many interim answers')
    })
    sent.once('upgrade', (_answer, socket) => {
      socket.destroy()
      refuse('an upgrade that nobody asked for')
    })
    sent.once('response', (answer) => {
      // The reader handles errors itself; before and after reading, the end of the stream is enough.
      answer.on('error', ignoreBroken)
      const status = answer.statusCode ?? 0
      if (status >= MIN_STATUS && status <= MAX_STATUS) resolve(answer)
      else refuse('a status that is none')
    })
  })
}

function ignoreBroken(): void {
  // Reported by the end of the stream.
}
