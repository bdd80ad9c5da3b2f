/** Invalid input: a file that does not exist, an address that does not answer, an option out of range. */
export class InputError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'InputError'
  }
}
