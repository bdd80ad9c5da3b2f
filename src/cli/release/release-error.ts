/** A release step that cannot be done; the message is for the person at the terminal. */
export class ReleaseError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ReleaseError'
  }
}
