/** The provider's answer is not a valid final HTTP response. */
export class MalformedAnswer extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'MalformedAnswer'
  }
}

/** The range of final statuses (RFC 9110 section 15); parsers accept any number. */
const MIN_STATUS = 200
const MAX_STATUS = 599

/** Maximum number of interim responses; real servers send one or two. */
export const MAX_INTERIM = 16

export function isFinalStatus(status: number): boolean {
  return status >= MIN_STATUS && status <= MAX_STATUS
}
