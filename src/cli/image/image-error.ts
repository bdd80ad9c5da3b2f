/** A failed step of the image build; the message is for the user. */
export class ImageError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ImageError'
  }
}
