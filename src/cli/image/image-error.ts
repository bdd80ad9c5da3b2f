/** A step of the image that cannot be done; the message is for the person at the terminal. */
export class ImageError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ImageError'
  }
}
