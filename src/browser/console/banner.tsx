interface BannerProps {
  readonly name: string
  readonly other: { readonly href: string; readonly name: string }
}

/** The header of both pages, with a skip link for keyboard users. */
export function Banner({ name, other }: BannerProps) {
  return (
    <header class="banner">
      <a
        class="skip"
        href="#content"
        onClick={(event) => {
          event.preventDefault()
          document.querySelector<HTMLElement>('main h2')?.focus()
        }}
      >
        Skip to the content
      </a>
      <h1>
        Confidential Model Router <small>{name}</small>
      </h1>
      <nav aria-label="Pages">
        <a href={other.href}>{other.name}</a>
      </nav>
    </header>
  )
}
