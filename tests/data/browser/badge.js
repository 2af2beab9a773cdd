() => {
  const svg = document.documentElement;
  const whole = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll('text')];
  const [left, right] = [...svg.querySelectorAll('g rect')].map(rect => rect.getBoundingClientRect());
  return {
    whole: [whole.width, whole.height],
    title: svg.querySelector('title').textContent,
    message: texts[1].textContent,
    label: texts[0].textContent,
    inside: texts.every((text, index) => {
      const box = text.getBoundingClientRect(), half = [left, right][index];
      return box.left > half.left && box.right < half.right && box.top >= whole.top && box.bottom <= whole.bottom;
    }),
    stretched: texts.map(text => {
      const wide = text.getComputedTextLength();
      text.removeAttribute('textLength');
      return wide / text.getComputedTextLength();
    }),
  };
}