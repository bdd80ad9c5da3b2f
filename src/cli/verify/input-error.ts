/** Input that cannot be used: a file that is not there, an address that does not answer, an option out of range. */
export class InputError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'InputError'
  }
}
