"""Time: du/dt = F(u) → u(t + dt), and the reason when it cannot be followed."""
